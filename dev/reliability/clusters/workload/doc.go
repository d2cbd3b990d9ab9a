// Package workload has processes that lock, write and die: the load of the campaign.
//
// [Workers] starts copies of the test program and kills some of them. A copy begins with [BeWorker],
// which does the work of a worker and reports whether it did. All that a worker does is in its
// history.
package workload
