package report

import (
	"errors"
	"image/color"
	"os"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dev/bench/internal/stats"
)

// A comparison is a picture with a row for each contender, the best at the top, and all values on one scale.
type comparison struct {
	title, unit string
	marks       []string // what the first value of a row is, the second, and so on; at most as many as shapes
	rows        []row
}

// A row has the values of a contender, one for each mark.
type row struct {
	contender string
	values    []float64
}

// gap is the margin of a picture, and what other spaces are parts of.
const gap = 14 * vg.Length(1)

// shapes tell the values of a row apart without a colour.
var shapes = []draw.GlyphDrawer{draw.RingGlyph{}, draw.SquareGlyph{}, draw.CircleGlyph{}, draw.PyramidGlyph{}}

// addTimes adds a row with quantiles of a contender's samples, if it has any.
func (c *comparison) addTimes(s record.Series, quantiles ...float64) {
	const shortest = 1e-2 // milliseconds; of a logarithmic scale
	sorted := slices.Sorted(slices.Values(s.Samples()))
	if len(sorted) == 0 {
		return
	}
	one := row{contender: s.Contender}
	for _, q := range quantiles {
		one.values = append(one.values, max(stats.Quantile(sorted, q)/1e3, shortest))
	}
	c.rows = append(c.rows, one)
}

// save draws the rows, in order of the values of one of the marks.
func (c comparison) save(path string, order func(a, b row) int) error {
	const perRow, around = 15 * vg.Length(1), 8 // rows that title, legend and axis take
	rows := slices.SortedStableFunc(slices.Values(c.rows), order)
	p := plot.New()
	p.Title.Text = c.title
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Add(plotter.NewGrid())
	p.X.Label.Text = c.unit
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, roundTicks{}
	p.Y.Min, p.Y.Max = 0, float64(len(rows)+len(c.marks))
	p.Y.Width, p.Y.Tick.Width, p.Y.Padding = 0, 0, 2*gap // browsers may write names wider than planned
	p.Legend.Top, p.Legend.Padding = true, gap/3
	var names plot.ConstantTicks
	for i, one := range rows {
		at, name := float64(len(rows)-i), one.contender
		if !hasLease(name) {
			name += " (no lease)"
		}
		names = append(names, plot.Tick{Value: at, Label: name})
		if err := one.draw(p, at); err != nil {
			return err
		}
	}
	p.Y.Tick.Marker = names
	p.X.Min, p.X.Max = p.X.Min/1.1, p.X.Max*1.1
	for i, mark := range c.marks {
		p.Legend.Add(mark, &plotter.Scatter{GlyphStyle: glyph(i, colourOf(""))})
	}
	if len(rows) == 0 {
		return nil // it has no scale
	}
	return write(p, perRow*vg.Length(len(rows)+around), path)
}

func (r row) draw(p *plot.Plot, at float64) error {
	colour := colourOf(r.contender)
	line, err := plotter.NewLine(plotter.XYs{{X: slices.Min(r.values), Y: at}, {X: slices.Max(r.values), Y: at}})
	if err != nil {
		return err
	}
	line.Color = colour
	p.Add(line)
	for i, value := range r.values {
		dot, err := plotter.NewScatter(plotter.XYs{{X: value, Y: at}})
		if err != nil {
			return err
		}
		dot.GlyphStyle = glyph(i, colour)
		p.Add(dot)
	}
	return nil
}

func glyph(i int, colour color.Color) draw.GlyphStyle {
	return draw.GlyphStyle{Color: colour, Radius: vg.Points(3.5), Shape: shapes[i]}
}

// colourOf returns the colour of a contender: sqllock's, which the colour-blind can tell from the greys, or a grey, which
// is lighter without a lease.
func colourOf(contender string) color.Color {
	switch {
	case strings.HasPrefix(contender, "sqllock"):
		return color.RGBA{G: 114, B: 178, A: 255}
	case hasLease(contender):
		return color.Gray{Y: 85}
	default:
		return color.Gray{Y: 140}
	}
}

// leaseless are the contenders whose locks have no lease: what belongs to a session or a connection,
// and the bare statements, which are no locks at all.
var leaseless = []string{"go-pglock", "GET_LOCK", "raw statements"}

// hasLease reports whether the contender's locks end by themselves when their holder has crashed.
func hasLease(contender string) bool {
	return !slices.ContainsFunc(leaseless, func(name string) bool { return strings.HasPrefix(contender, name) })
}

// write writes a picture on white: it is read on dark pages too.
func write(p *plot.Plot, height vg.Length, path string) error {
	picture := vgsvg.New(10*vg.Inch, height)
	all := draw.New(picture)
	all.SetColor(color.White)
	all.Fill(all.Path())
	p.Draw(draw.Crop(all, gap, -gap, gap, -gap))
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(f)
	return errors.Join(err, f.Close())
}
