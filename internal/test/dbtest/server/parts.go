package server

import "context"

// Ensure installs Debian packages if one of the programs is missing. The error wraps [ErrMissing]
// if this process cannot install them, or may not.
func Ensure(ctx context.Context, programs []string, packages ...string) error {
	_, err := ensure(ctx, func() (string, bool) {
		for _, program := range programs {
			if _, ok := find(program); !ok {
				return "", false
			}
		}
		return "", true
	}, packages...)
	return err
}

// FetchOracleMySQL returns the directory of Oracle's MySQL with all of its libraries, as
// [StartOracleMySQL] uses it. It is downloaded once.
func FetchOracleMySQL(ctx context.Context) (root string, err error) {
	if err := onlyAMD64(); err != nil {
		return "", err
	}
	return fetched(ctx, "mysql-sid", fetchMySQL)
}
