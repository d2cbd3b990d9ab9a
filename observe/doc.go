// Package observe has the events that observers of a registry or a repository receive: for logs,
// metrics and traces. It imports only the standard library, and package sqllock imports it.
//
//	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
//		Observers: []*observe.Observer{observe.SlogObserver(slog.Default())},
//	})
package observe
