package sqllock

// RenewInParts has one statement renew n leases of r at most, instead of ten thousand.
func RenewInParts(r *Registry, n int) { r.renewalPart = n }
