package server

import "fmt"

// Pause stops all processes of the server with SIGSTOP: the kernel still accepts connections,
// but the server does not respond. [Server.Resume] ends the pause. Meanwhile [Server.Kill]
// works, and [Server.Stop] does not.
func (s *Server) Pause() error {
	if err := s.signalFamily(stopFamily); err != nil {
		return fmt.Errorf("pause %s: %w", s.recipe.name, err)
	}
	return nil
}

// Resume ends a Pause.
func (s *Server) Resume() error {
	if err := s.signalFamily(continueFamily); err != nil {
		return fmt.Errorf("resume %s: %w", s.recipe.name, err)
	}
	return nil
}

func (s *Server) signalFamily(signal func(pid int) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || s.process.hasEnded() {
		return ErrEnded
	}
	return signal(s.process.cmd.Process.Pid)
}
