package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/test/flaky"
)

// job is the label of all processes.
const job = "shop"

// How many callers of each kind a process has.
const (
	requests = 4
	reports  = 2
	crowd    = 8
)

var errCut = errors.New("the network is cut")

// A trouble happens to the workload. from and until are parts of the time.
type trouble struct {
	from, until float64
	what        string
	run         func(ctx context.Context, processes []*process) // until ctx ends
}

// troubles are what the picture shows, in this order.
var troubles = []trouble{
	{0.15, 0.30, "24 callers want one lock", wantOneLock},
	{0.42, 0.56, "app-2, which leads, has no database", cutOff},
	{0.70, 0.70, "an operator deletes the rows of the reports", deleteReports},
	{0.85, 0.85, "the leader resigns", resign},
}

// work has processes work for a time, with troubles, while every interval they are scraped.
func work(ctx context.Context, open func(instance string) (database, error), lasting, interval time.Duration) (_ *samples, err error) {
	var processes []*process
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.stop(context.WithoutCancel(ctx)))
		}
	}()
	for i := range 3 {
		instance := fmt.Sprintf("app-%d", i+1)
		db, err := open(instance)
		if err != nil {
			return nil, err
		}
		p, err := start(ctx, instance, db, i == 0)
		if err != nil {
			return nil, err
		}
		processes = append(processes, p)
	}
	ctx, cancel := context.WithTimeout(ctx, lasting)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { processes[1].leads(ctx) })
	sleep(ctx, interval) // so that app-2 is the first to lead
	for i, p := range processes {
		p.work(ctx, &all, i != 1)
	}
	for _, t := range troubles {
		all.Go(func() { t.happen(ctx, processes, lasting) })
	}
	return scrapeAll(ctx, processes, interval)
}

// work starts the callers of a process.
func (p *process) work(ctx context.Context, all *sync.WaitGroup, leads bool) {
	for range requests {
		all.Go(func() { p.requests(ctx) })
	}
	for range reports {
		all.Go(func() { p.reports(ctx) })
	}
	all.Go(func() { p.ticks(ctx) })
	if leads {
		all.Go(func() { p.leads(ctx) })
	}
}

// happen runs the trouble when its time has come.
func (t trouble) happen(ctx context.Context, processes []*process, lasting time.Duration) {
	part := func(p float64) time.Duration { return time.Duration(p * float64(lasting)) }
	if !sleep(ctx, part(t.from)) {
		return
	}
	if t.until > t.from {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, part(t.until-t.from))
		defer cancel()
	}
	t.run(ctx, processes)
}

func wantOneLock(ctx context.Context, processes []*process) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, p := range processes {
		for range crowd {
			all.Go(func() { p.crowd(ctx) })
		}
	}
}

func cutOff(ctx context.Context, processes []*process) {
	network := processes[1].network
	network.Follow(func(context.Context, flaky.Moment) error { return errCut })
	<-ctx.Done()
	network.Follow(nil)
}

func deleteReports(ctx context.Context, processes []*process) {
	repository := processes[0].registry.Repository()
	rows, err := repository.List(ctx)
	if err != nil {
		return // the picture lacks the losses, and its test fails
	}
	for _, row := range rows {
		if strings.HasPrefix(row.LockKey, "report/") {
			_, _ = repository.DeleteRow(ctx, row)
		}
	}
}

func resign(ctx context.Context, processes []*process) {
	for _, p := range processes {
		if p.elector.IsLeader(ctx) == nil {
			_ = p.elector.Resign(ctx)
			return
		}
	}
}
