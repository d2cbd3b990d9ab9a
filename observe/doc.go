// Package observe has what observers of a registry, or of a repository, are told: for logs, metrics and
// traces. It imports the standard library alone, and package sqllock imports it.
//
//	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
//		Observers: []*observe.Observer{observe.SlogObserver(slog.Default())},
//	})
package observe
