// Package javaclient builds and drives the Java program of package spring, in which
// Spring Integration's own lock registry is at work:
//
//	program, err := javaclient.Build(ctx, javaclient.Spring7) // Maven, once a machine
//	jvm, err := program.Start(ctx, nil)
//	defer jvm.Close()
//	client, err := jvm.Open(ctx, javaclient.Settings{DSN: dsn, TTL: 10 * time.Second})
//	err = client.Thread("a").Lock(ctx, "orders/42")
//
// A [JVM] is a process, a [Client] an application in it, with a pool, a Spring
// context and a registry of its own, and a [Thread] one of its threads: Spring's
// locks belong to threads. For benchmarks there is [Client.Bench].
package javaclient
