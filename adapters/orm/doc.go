// Package orm runs sqllock on the pools of sqlx, GORM, bun, ent, sqlc and pgx, and guards their
// transactions. It is a module of its own, so that the library's module requires none of them.
package orm

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate
