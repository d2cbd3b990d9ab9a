package javaclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock/dev/interop/spring"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// A Generation of Spring Integration is a profile of the Maven project.
type Generation string

// The generations differ in the columns of the lock table, and in what their registries remember of a lock.
const (
	Spring6  Generation = "spring6"  // four columns
	Spring70 Generation = "spring70" // five columns: 7.0
	Spring7  Generation = "spring7"  // five columns: the newest
)

// Variable returns the environment variable that selects another version of the generation than
// pom.xml: SQLLOCK_SPRING6, SQLLOCK_SPRING70 or SQLLOCK_SPRING7.
func (g Generation) Variable() string { return "SQLLOCK_" + strings.ToUpper(string(g)) }

// A Program is the built Java program.
type Program struct {
	// Generation is the generation for which it was built.
	Generation Generation
	// Dir contains the program in classes and the jars in lib.
	Dir string
}

// building is held during a build: Maven's repository is shared, and two concurrent builds would
// not be faster.
var building sync.Mutex

// Build returns the program for a generation. Maven builds it and downloads the jars. It is kept
// in the user's cache until the project changes. Build returns an [ErrMissing] if a program is
// missing.
func Build(ctx context.Context, generation Generation) (*Program, error) {
	building.Lock()
	defer building.Unlock()
	if err := server.Ensure(ctx, []string{"java", "javac", "mvn"}, "maven", "default-jdk-headless"); err != nil {
		return nil, fmt.Errorf("build %s: %w: %w", generation, ErrMissing, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	name, err := fingerprint(generation)
	if err != nil {
		return nil, err
	}
	program := &Program{Generation: generation, Dir: filepath.Join(cache, "sqllock-interop", name)}
	if _, err := os.Stat(program.Dir); err == nil {
		return program, nil
	}
	if err := program.make(ctx); err != nil {
		return nil, fmt.Errorf("build %s: %w", generation, err)
	}
	return program, nil
}

// fingerprint identifies all inputs of a build.
func fingerprint(generation Generation) (string, error) {
	sum := sha256.New()
	sum.Write([]byte(os.Getenv(generation.Variable())))
	err := fs.WalkDir(spring.Project, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := spring.Project.ReadFile(path)
		sum.Write(fmt.Appendf(nil, "%s %d\n%s", path, len(content), content))
		return err
	})
	return string(generation) + "-" + hex.EncodeToString(sum.Sum(nil))[:16], err
}

// make builds in another directory and renames it, so the final directory is always complete.
func (p *Program) make(ctx context.Context) (err error) {
	parent := filepath.Dir(p.Dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(parent, "building-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	project, output := filepath.Join(aside, "project"), filepath.Join(aside, "output")
	if err := os.CopyFS(project, spring.Project); err != nil {
		return err
	}
	if err := p.maven(ctx, project, output); err != nil {
		return err
	}
	err = os.Rename(output, p.Dir)
	if _, there := os.Stat(p.Dir); there == nil {
		return nil // another process has built it
	}
	return err
}

func (p *Program) maven(ctx context.Context, project, output string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute) // about 20 MB of jars
	defer cancel()
	arguments := []string{"-B", "-q", "-ntp", "-P", string(p.Generation), "-Doutput=" + output, "prepare-package"}
	if version := os.Getenv(p.Generation.Variable()); version != "" {
		arguments = append(arguments, "-Dspring.integration.version="+version)
	}
	cmd := exec.CommandContext(ctx, "mvn", arguments...)
	cmd.Dir = project
	cmd.WaitDelay = 5 * time.Second
	text, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w: %s", cmd, errors.Join(ctx.Err(), err), text)
	// Missing jars are a failure of the network; other errors are not.
	for _, sign := range []string{"Could not resolve", "Could not transfer", "Could not find artifact", "could not be resolved"} {
		if strings.Contains(string(text), sign) {
			return fmt.Errorf("%w: %w", ErrMissing, err)
		}
	}
	return err
}
