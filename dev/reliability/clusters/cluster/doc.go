// Package cluster starts real database clusters for tests, each on hosts of its own, and breaks
// them: it kills and pauses nodes and cuts their network.
//
// A host is a set of Linux namespaces with an address of its own: network, processes, mounts. So
// a node can lose its peers while clients still reach it, and all processes of a host can be
// killed, whoever has started them. The hosts hang on a bridge. This process is the clients' host
// and has the last address.
//
// The package needs root on Linux, and installs what is missing from Debian's packages, if
// [server.MayInstall]. Errors wrap [server.ErrMissing] if something cannot be had.
//
// Everything ends with this process, however it ends: the kernel kills the first process of each
// host when its parent dies, and with it all others of the host; the network goes with them.
package cluster
