package mysqldriver

import "testing"

// Whatever the DSN calls it, autocommit is on.
func TestAutocommit(t *testing.T) {
	t.Parallel()
	for name, same := range map[string]bool{
		"autocommit": true, "AUTOCOMMIT": true, "@@autocommit": true, "session autocommit": true, "@@session.autocommit": true,
		"@@SESSION . autocommit": true, "local autocommit": true, "autocommitted": false, "my_autocommit": false,
	} {
		parameters := map[string]string{name: "0"}
		complete(parameters)
		if _, kept := parameters[name]; parameters["autocommit"] != "1" || kept == same && name != "autocommit" {
			t.Errorf("%s: %v", name, parameters)
		}
	}
}
