package contender

import "github.com/sqllock/sqllock"

// A Repository is a session of sqllock's that shows its table.
type Repository interface{ Repository() *sqllock.Repository }

// Repositories are sqllock on each kind of server, for what only its table can
// do.
func Repositories() []Contender {
	var all []Contender
	for _, d := range []database{postgresPGX, mariaDB} {
		c := variant{name: "repository"}.contender(d)
		c.Quick = true
		all = append(all, c)
	}
	return all
}

func (s *sqllockSession) Repository() *sqllock.Repository { return s.repository }
