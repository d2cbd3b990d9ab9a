package dashboard

import (
	"maps"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// TestNoPanelIsEmpty has Prometheus's engine evaluate each expression of the dashboard over the metrics
// that exist. Names and labels that are right can still join to nothing.
func TestNoPanelIsEmpty(t *testing.T) {
	t.Parallel()
	var all []storage.Series
	for _, family := range familiesThatExist(t) {
		all = append(all, seriesOf(t, family)...)
	}
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: promslog.NewNopLogger(), MaxSamples: 1e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
	for where, expr := range panels(t) {
		query, err := engine.NewInstantQuery(t.Context(), queryable(all), nil, expr, time.UnixMilli(0).Add(scrapes*scrapeInterval))
		must(t, err)
		found, err := query.Exec(t.Context()).Vector()
		must(t, err)
		if len(found) == 0 {
			t.Errorf("%s is empty", where)
		}
	}
}

// The series are scraped for an hour.
const (
	scrapeInterval = 15 * time.Second
	scrapes        = 240
)

// seriesOf returns the series of a family, as Prometheus scrapes them. Each of them rises all the time.
func seriesOf(t *testing.T, family *dto.MetricFamily) (all []storage.Series) {
	chunk := chunkenc.NewXORChunk()
	to, err := chunk.Appender()
	must(t, err)
	for i := range scrapes {
		to.Append(0, (time.Duration(i) * scrapeInterval).Milliseconds(), float64(i))
	}
	add := func(name string, of map[string]string) {
		of = maps.Clone(of)
		of[nameLabel] = name
		all = append(all, &storage.SeriesEntry{Lset: labels.FromMap(of), SampleIteratorFn: chunk.Iterator})
	}
	for _, metric := range family.GetMetric() {
		of := map[string]string{"job": "shop", "instance": "app-1"}
		for _, l := range metric.GetLabel() {
			of[l.GetName()] = l.GetValue()
		}
		if family.GetType() != dto.MetricType_HISTOGRAM {
			add(family.GetName(), of)
			continue
		}
		add(family.GetName()+"_count", of)
		add(family.GetName()+"_sum", of)
		for _, bucket := range metric.GetHistogram().GetBucket() {
			of["le"] = strconv.FormatFloat(bucket.GetUpperBound(), 'g', -1, 64)
			add(family.GetName()+"_bucket", of)
		}
	}
	return all
}

// queryable has the engine find the series that match.
func queryable(all []storage.Series) storage.Queryable {
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			found := &seriesSet{SeriesSet: storage.EmptySeriesSet()}
			for _, one := range all {
				if matchAll(matchers, one.Labels()) {
					found.left = append(found.left, one)
				}
			}
			return found
		},
	}}
}

func matchAll(matchers []*labels.Matcher, of labels.Labels) bool {
	for _, m := range matchers {
		if !m.Matches(of.Get(m.Name)) {
			return false
		}
	}
	return true
}

// A seriesSet iterates over a list of series.
type seriesSet struct {
	storage.SeriesSet // has neither errors nor warnings
	now               storage.Series
	left              []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.now, s.left = s.left[0], s.left[1:]
	return true
}

func (s *seriesSet) At() storage.Series { return s.now }
