package tests_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) {
	task, ok := os.LookupEnv(taskVariable)
	if !ok {
		testmain.Run(m)
		return
	}
	if err := do(task); err != nil {
		fmt.Println(err) // the test reads it
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Errorf("error %v, want %v", err, wanted)
	}
}
