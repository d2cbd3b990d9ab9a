package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// samples are what was scraped: a storage.Queryable for the engine of Prometheus.
type samples struct {
	series     map[string]*series
	start, end time.Time
	interval   time.Duration
}

// A series has the values of one name and its labels.
type series struct {
	labels labels.Labels
	values []chunks.Sample
}

// scrapeAll scrapes all processes at each interval, until ctx ends.
func scrapeAll(ctx context.Context, processes []*process, interval time.Duration) (*samples, error) {
	s := &samples{series: make(map[string]*series), start: time.Now(), interval: interval}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		s.end = time.Now()
		for _, p := range processes {
			if err := s.scrape(p); err != nil {
				return nil, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return s, nil
		}
	}
}

// scrape reads the metrics of a process in their text format. While the rows of the table cannot be
// counted, the others are there.
func (s *samples) scrape(p *process) error {
	families, _ := p.metrics.Gather()
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return err
		}
	}
	parser := textparse.NewPromParser(text.Bytes(), labels.NewSymbolTable(), false)
	for {
		entry, err := parser.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case entry == textparse.EntrySeries:
			var found labels.Labels
			parser.Labels(&found)
			_, _, value := parser.Series()
			with := labels.NewBuilder(found).Set("job", job).Set("instance", p.instance).Labels()
			s.add(with, sample{s.end.UnixMilli(), value})
		}
	}
}

func (s *samples) add(of labels.Labels, one sample) {
	key := of.String()
	if s.series[key] == nil {
		s.series[key] = &series{labels: of}
	}
	s.series[key].values = append(s.series[key].values, one)
}

// Querier implements storage.Queryable. It returns all samples of a series, whenever they were made.
func (s *samples) Querier(int64, int64) (storage.Querier, error) { return querier{s: s}, nil }

// A querier is for one query. The engine does not ask it for the names of labels.
type querier struct {
	s *samples
}

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, one := range q.s.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }) {
			found = append(found, storage.NewListSeries(one.labels, one.values))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &seriesSet{left: found}
}

// LabelValues implements storage.Querier.
func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errors.ErrUnsupported
}

// LabelNames implements storage.Querier.
func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, errors.ErrUnsupported
}

// Close implements storage.Querier.
func (querier) Close() error { return nil }

// A seriesSet is a storage.SeriesSet.
type seriesSet struct {
	left []storage.Series
	now  storage.Series
}

// Next implements storage.SeriesSet.
func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.now, s.left = s.left[0], s.left[1:]
	return true
}

// At implements storage.SeriesSet.
func (s *seriesSet) At() storage.Series { return s.now }

// Err implements storage.SeriesSet.
func (*seriesSet) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (*seriesSet) Warnings() annotations.Annotations { return nil }

// A sample is a chunks.Sample: a number at a time in milliseconds.
type sample struct {
	at    int64
	value float64
}

// T implements chunks.Sample.
func (s sample) T() int64 { return s.at }

// ST implements chunks.Sample.
func (sample) ST() int64 { return 0 }

// F implements chunks.Sample.
func (s sample) F() float64 { return s.value }

// H implements chunks.Sample.
func (sample) H() *histogram.Histogram { return nil }

// FH implements chunks.Sample.
func (sample) FH() *histogram.FloatHistogram { return nil }

// Type implements chunks.Sample.
func (sample) Type() chunkenc.ValueType { return chunkenc.ValFloat }

// Copy implements chunks.Sample.
func (s sample) Copy() chunks.Sample { return s }
