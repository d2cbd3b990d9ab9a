// Package schema is what ent generates its client from.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// An Account is the row that the tests write under a lock.
type Account struct{ ent.Schema }

// Fields implements ent.Interface.
func (Account) Fields() []ent.Field { return []ent.Field{field.Int("balance")} }
