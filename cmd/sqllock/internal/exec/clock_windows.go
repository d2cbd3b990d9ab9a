package exec

// now is not needed where there are no watchdogs.
func now() instant { return 0 }
