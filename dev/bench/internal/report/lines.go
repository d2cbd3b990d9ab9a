package report

import (
	"cmp"
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

	"github.com/sqllock/sqllock/dev/bench/internal/durable"
)

// The size of a picture, and of the labels beside it.
const (
	width, height = 10 * vg.Inch, 5 * vg.Inch
	beside        = 3.1 * vg.Inch
	rowHeight     = 10 * vg.Length(1)
	gap           = 14 * vg.Length(1) // between a line's end and its label
)

// ours are the colours of sqllock: that of Open, or of the default, first. They are Okabe and Ito's, which the
// colour-blind can tell apart, and differ in lightness too.
var ours = []color.Color{
	color.RGBA{G: 114, B: 178, A: 255},
	color.RGBA{R: 213, G: 94, A: 255},
	color.RGBA{R: 204, G: 121, B: 167, A: 255},
	color.RGBA{G: 158, B: 115, A: 255},
	color.RGBA{A: 255},
}

// The colours of the others: locks with a lease, and everything else.
var (
	rivalColour = color.Gray{Y: 85}
	lightColour = color.Gray{Y: 140}
)

// leaseless are the contenders whose locks have no lease: what belongs to a session or a connection,
// and the bare statements, which are no locks at all.
var leaseless = []string{"go-pglock", "GET_LOCK", "raw statements"}

// hasLease reports whether the contender's locks end by themselves when their holder has crashed.
func hasLease(contender string) bool {
	return !slices.ContainsFunc(leaseless, func(name string) bool { return strings.HasPrefix(contender, name) })
}

func isOurs(contender string) bool { return strings.HasPrefix(contender, "sqllock") }

// A label is the name of a line, at its end.
type label struct {
	text   string
	colour color.Color
	end    plotter.XY
	strong bool
}

type labels []label

// add draws a line: those of sqllock strong and in colours, others thin and grey, and dashed if their
// locks have no lease, or for etcd, whose order is that of arrival.
func (l *labels) add(p *plot.Plot, contender string, points plotter.XYs) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	name, strong := contender, isOurs(contender)
	switch {
	case strong:
		line.Color, line.Width = ours[l.ofOurs()%len(ours)], vg.Points(2.2)
	case contender == durable.Etcd:
		line.Color, line.Width = rivalColour, vg.Points(1)
		line.Dashes = []vg.Length{vg.Points(10), vg.Points(3)}
	case hasLease(contender):
		line.Color, line.Width = rivalColour, vg.Points(1)
	default:
		line.Color, line.Width = lightColour, vg.Points(1)
		line.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
		name += " (no lease)"
	}
	p.Add(line)
	*l = append(*l, label{name, line.Color, points[len(points)-1], strong})
	return nil
}

// ofOurs is how many lines of sqllock there are.
func (l *labels) ofOurs() (n int) {
	for _, one := range *l {
		if one.strong {
			n++
		}
	}
	return n
}

// save draws the plot with the labels beside it. A plot without lines has no scale, and is not
// drawn.
func (l *labels) save(p *plot.Plot, path string) error {
	if len(*l) == 0 {
		return nil
	}
	return write(path, height, func(all draw.Canvas) {
		canvas := draw.Crop(all, gap, -beside, gap, -gap)
		p.Draw(canvas)
		l.draw(p, all, p.DataCanvas(canvas))
	})
}

// write writes a picture, which is white where nothing is painted: it is read on dark pages too.
func write(path string, height vg.Length, paint func(all draw.Canvas)) error {
	picture := vgsvg.New(width, height)
	all := draw.New(picture)
	all.SetColor(color.White)
	all.Fill(all.Path())
	paint(all)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = picture.WriteTo(f)
	return errors.Join(err, f.Close())
}

// draw writes the labels to the right of the data, in the order of the lines' ends.
func (l *labels) draw(p *plot.Plot, all, data draw.Canvas) {
	x, y := p.Transforms(&data)
	sorted := slices.SortedFunc(slices.Values(*l), func(a, b label) int {
		return cmp.Or(cmp.Compare(b.end.Y, a.end.Y), cmp.Compare(a.end.X, b.end.X)) // from above
	})
	ends := make([]vg.Length, len(sorted))
	for i, one := range sorted {
		ends[i] = y(one.end.Y)
	}
	for i, at := range spread(ends, data.Min.Y, height-rowHeight) {
		one := sorted[i]
		link := draw.LineStyle{Color: one.colour, Width: vg.Points(0.5)}
		all.StrokeLine2(link, x(one.end.X), ends[i], data.Max.X+gap-2, at)
		style := p.Legend.TextStyle
		style.Color, style.YAlign = color.Color(color.Gray{Y: 70}), draw.YCenter
		if one.strong {
			style.Color = one.colour
		}
		all.FillText(style, vg.Point{X: data.Max.X + gap, Y: at}, one.text)
	}
}

// spread moves heights, which fall, apart from each other, so that labels do not overlap.
func spread(heights []vg.Length, least, top vg.Length) []vg.Length {
	at := slices.Clone(heights)
	for i := range at {
		limit := top
		if i > 0 {
			limit = at[i-1] - rowHeight
		}
		at[i] = min(at[i], limit)
	}
	for i := len(at) - 1; i >= 0; i-- { // those that were pushed out below push back
		limit := least
		if i < len(at)-1 {
			limit = at[i+1] + rowHeight
		}
		at[i] = max(at[i], limit)
	}
	return at
}

func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Add(plotter.NewGrid())
	return p
}
