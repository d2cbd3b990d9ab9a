package javaclient

import (
	"errors"
	"testing"
)

func TestJDBC(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dsn                 string
		parameters          map[string]string
		url, user, password string
	}{
		{
			"postgres://app:se%40cret@127.0.0.1:5432/shop?sslmode=disable&search_path=t_1", nil,
			"jdbc:postgresql://127.0.0.1:5432/shop?currentSchema=t_1", "app", "se@cret",
		},
		{
			"app:secret@tcp(127.0.0.1:3306)/shop?parseTime=true",
			map[string]string{"sessionVariables": "time_zone='-03:30'"},
			"jdbc:mariadb://127.0.0.1:3306/shop?sessionVariables=time_zone='-03:30'", "app", "secret",
		},
	} {
		url, user, password, err := jdbcOf(test.dsn, test.parameters)
		if err != nil || url != test.url || user != test.user || password != test.password {
			t.Errorf("%s: %s, %s, %s, %v", test.dsn, url, user, password, err)
		}
	}
	for _, dsn := range []string{"postgres://%zz", "nonsense", "app@unix(/run/mysqld.sock)/shop"} {
		if url, _, _, err := jdbcOf(dsn, nil); !errors.Is(err, errDSN) {
			t.Errorf("%s: %s, %v", dsn, url, err)
		}
	}
}
