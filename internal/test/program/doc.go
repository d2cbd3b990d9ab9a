// Package program runs the command sqllock in processes of its own, for tests of the command. The test binary itself
// is the program: [Main], called by TestMain, makes it act as sqllock or as one of several helper commands. On Unix,
// a [Program] is such a process, whose output and end a test can wait for.
package program
