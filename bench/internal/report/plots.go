package report

import (
	"errors"
	"image/color"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sqllock/sqllock/bench/internal/record"
	"github.com/sqllock/sqllock/bench/internal/stats"
)

// The size of a picture, and how much of it the legend has.
const (
	width, height = 10 * vg.Inch, 4.5 * vg.Inch
	beside        = 2.4 * vg.Inch
)

// workers are those of the loads "pairs".
var workers = []struct {
	load  string
	count float64
}{{"pairs 1", 1}, {"pairs 16", 16}, {"pairs 64", 64}, {"pairs 256", 256}}

// plotPairs draws the rates of one database's contenders over the workers.
func plotPairs(f *record.File, database, path string) error {
	p := newPlot("acquire and release, distinct keys: " + database)
	p.X.Label.Text, p.Y.Label.Text = "workers", "pairs per second"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = plot.ConstantTicks{{Value: 1, Label: "1"}, {Value: 16, Label: "16"}, {Value: 64, Label: "64"}, {Value: 256, Label: "256"}}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	lines, most := 0, mostLoads(f, database)
	for _, contender := range contendersUnder(f, database) {
		var points plotter.XYs
		for _, w := range workers {
			if s, ok := f.Find(w.load, contender); ok && len(s.Values("pairs_per_s")) > 0 {
				points = append(points, plotter.XY{X: w.count, Y: stats.Summarize(s.Values("pairs_per_s")).Median})
			}
		}
		if len(points) < len(workers) && len(points) < most {
			continue // a variant that differs in little
		}
		if err := add(p, contender, points, lines); err != nil {
			return err
		}
		lines++
	}
	return save(p, lines, path)
}

// plotHandOff draws which part of the hand-offs took at most how long.
func plotHandOff(f *record.File, path string) error {
	p := newPlot("hand-off between two processes")
	p.X.Label.Text, p.Y.Label.Text = "milliseconds at most", "part of the hand-offs"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max = 0, 1
	lines := 0
	for _, s := range f.Under("hand-off", "") {
		sorted := slices.Sorted(slices.Values(s.Samples()))
		var points plotter.XYs
		for i, sample := range sorted {
			points = append(points, plotter.XY{X: max(sample/1e3, 1e-2), Y: float64(i+1) / float64(len(sorted))})
		}
		if len(points) == 0 {
			continue
		}
		if err := add(p, s.Contender, points, lines); err != nil {
			return err
		}
		lines++
	}
	return save(p, lines, path)
}

// save draws the plot with its legend beside it. A plot without lines has no
// scale, and is not drawn.
func save(p *plot.Plot, lines int, path string) error {
	if lines == 0 {
		return nil
	}
	legend := p.Legend
	p.Legend = plot.NewLegend()
	picture := vgsvg.New(width, height)
	all := draw.New(picture)
	all.SetColor(color.White)
	all.Fill(all.Path())
	p.Draw(draw.Crop(all, 0, -beside, 0, 0))
	legend.Draw(draw.Crop(all, width-beside+vg.Points(12), 0, 0, -vg.Points(20)))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(f)
	return errors.Join(err, f.Close())
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.BackgroundColor = color.White // it is read on dark pages too
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	return p
}

func add(p *plot.Plot, name string, points plotter.XYs, n int) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Dashes = plotutil.Color(n), plotutil.Dashes(n/7)
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}

// mostLoads is under how many of the loads any contender was.
func mostLoads(f *record.File, database string) (most int) {
	for _, contender := range contendersUnder(f, database) {
		n := 0
		for _, w := range workers {
			if _, ok := f.Find(w.load, contender); ok {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// contendersUnder returns those of a database, in the order of the data.
func contendersUnder(f *record.File, database string) []string {
	var names []string
	for _, w := range workers {
		for _, s := range f.Under(w.load, database) {
			if !slices.Contains(names, s.Contender) {
				names = append(names, s.Contender)
			}
		}
	}
	return names
}

func picture(pictures, name string) string { return filepath.Join(pictures, "bench-"+name+".svg") }
