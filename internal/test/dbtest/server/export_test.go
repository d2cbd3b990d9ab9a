package server

// AwaitEnd returns when the server has ended by itself. Nothing that can be
// seen from outside comes as late as that.
func (s *Server) AwaitEnd() { <-s.process.ended }
