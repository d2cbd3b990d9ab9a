package main

// gateName is the name by which a gate is started.
//
// A gate is what a command is at first: a process of this program that waits until
// a watchdog is ready to kill it, and becomes the command then. A command that was
// started at once could be left alone, or have children, before that.
const gateName = "exec-gate"
