package main

import "os"

// Windows does not stop processes.
func notifyStops(chan<- os.Signal) {}

func isStop(os.Signal) bool { return false }

func isContinue(os.Signal) bool { return false }

func (c *child) stop() {}

func (c *child) resume() {}

func stopSelf() {}
