// Package orm runs sqllock on the pools of sqlx, GORM, bun, ent and pgx, and guards their
// transactions. It is a module of its own, so that the library's module requires none of them.
package orm
