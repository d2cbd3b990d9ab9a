package server

// AwaitEnd waits until the server has ended by itself. All signs of it that are visible from
// outside come earlier.
func (s *Server) AwaitEnd() { <-s.process.ended }
