package sqllock

// MaxKeys is how many keys a joint lock has at most: see [Registry.ObtainAll].
const MaxKeys = 1000

// ObtainAll returns one lock of several keys.
func (r *Registry) ObtainAll(keys ...string) (*JdbcLock, error) {
	if len(keys) != 1 {
		return nil, invalid("%d keys", len(keys))
	}
	return r.Obtain(keys[0])
}
