package notify

import "sync"

// subscriptions are the subscriptions of a listener, by topic. The zero value is empty.
type subscriptions struct {
	mu      sync.Mutex
	byTopic map[string]map[chan struct{}]struct{}
}

// subscribe returns a new channel that receives a value when topic is notified.
func (s *subscriptions) subscribe(topic string) chan struct{} {
	woken := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byTopic == nil {
		s.byTopic = make(map[string]map[chan struct{}]struct{})
	}
	if s.byTopic[topic] == nil {
		s.byTopic[topic] = make(map[chan struct{}]struct{})
	}
	s.byTopic[topic][woken] = struct{}{}
	return woken
}

// unsubscribe removes a channel. It may be called more than once.
func (s *subscriptions) unsubscribe(topic string, woken chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byTopic[topic], woken)
	if len(s.byTopic[topic]) == 0 {
		delete(s.byTopic, topic)
	}
}

// wake wakes up the subscribers of a topic.
func (s *subscriptions) wake(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wakeEach(s.byTopic[topic])
}

// wakeAll wakes up all subscribers.
func (s *subscriptions) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, some := range s.byTopic {
		wakeEach(some)
	}
}

// wakeEach does not block: a channel that still holds a value needs no other.
func wakeEach(some map[chan struct{}]struct{}) {
	for woken := range some {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}
