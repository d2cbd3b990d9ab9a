package report

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

// shapes tell the values of a row apart without a colour.
var shapes = []draw.GlyphDrawer{draw.RingGlyph{}, draw.SquareGlyph{}, draw.CircleGlyph{}, draw.PyramidGlyph{}}

// save draws the rows, in order of the values of one of the marks.
func (c comparison) save(path string, order func(a, b row) int) error {
	const perRow, around = 15 * vg.Length(1), 8 // rows that title, legend and axis take
	rows := slices.SortedStableFunc(slices.Values(c.rows), order)
	p := newPlot(c.title)
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
		p.Legend.Add(mark, &plotter.Scatter{GlyphStyle: glyph(i, rivalColour)})
	}
	if len(rows) == 0 {
		return nil // it has no scale
	}
	return write(path, perRow*vg.Length(len(rows)+around), func(all draw.Canvas) {
		p.Draw(draw.Crop(all, gap, -gap, gap, -gap))
	})
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

// colourOf returns the colour of a contender: sqllock's, or a grey, which is lighter without a lease.
func colourOf(contender string) color.Color {
	switch {
	case isOurs(contender):
		return ours[0]
	case hasLease(contender):
		return rivalColour
	default:
		return lightColour
	}
}
