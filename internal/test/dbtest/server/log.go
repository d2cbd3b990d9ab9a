package server

import (
	"fmt"
	"os"
)

// logEnd returns the end of the log for error messages: only the server's own messages explain
// why it did not start.
func (s *Server) logEnd() string {
	const enough = 2000
	text, err := os.ReadFile(s.Log())
	if err != nil {
		return fmt.Sprintf("no log: %v", err)
	}
	if len(text) == 0 {
		return "its log is empty"
	}
	return fmt.Sprintf("its log ends:\n%s", text[max(0, len(text)-enough):])
}
