package exec

import "github.com/sqllock/sqllock/internal/cli/process"

// end ends a command whose lease is lost: Windows can only kill it.
func (x *execution) end(c *process.Child) {
	c.Kill()
	<-c.Ended
}
