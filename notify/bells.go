package notify

import "sync"

// bells are the subscriptions of a listener, by topic. The zero value has none.
type bells struct {
	mu      sync.Mutex
	byTopic map[string]map[chan struct{}]struct{}
}

// hang adds a bell to a topic.
func (b *bells) hang(topic string) chan struct{} {
	bell := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byTopic == nil {
		b.byTopic = make(map[string]map[chan struct{}]struct{})
	}
	if b.byTopic[topic] == nil {
		b.byTopic[topic] = make(map[chan struct{}]struct{})
	}
	b.byTopic[topic][bell] = struct{}{}
	return bell
}

// remove takes a bell away. To do so again does nothing.
func (b *bells) remove(topic string, bell chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byTopic[topic], bell)
	if len(b.byTopic[topic]) == 0 {
		delete(b.byTopic, topic)
	}
}

// ring rings the bells of a topic.
func (b *bells) ring(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ringEach(b.byTopic[topic])
}

func (b *bells) ringAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, some := range b.byTopic {
		ringEach(some)
	}
}

// ringEach waits for nobody: a bell that was rung and not heard yet says it all.
func ringEach(some map[chan struct{}]struct{}) {
	for bell := range some {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}
