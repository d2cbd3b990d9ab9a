package main

import (
	"fmt"
	"math"
	"time"
)

// Sizes, in pixels.
const (
	column     = 50.0
	row        = 24.0
	between    = 6.0
	header     = 40.0
	footer     = 34.0
	letter     = 6.0 // is how wide one is, about
	legendLine = 14.0
)

// A drawing draws panels.
type drawing struct {
	*picture
	s *samples
}

// draw returns the panels as an SVG.
func draw(panels []shown, s *samples, title string) []byte {
	bottom := 0.0
	for _, p := range panels {
		bottom = max(bottom, header+row*float64(p.GridPos.Y+p.GridPos.H))
	}
	d := drawing{newPicture(24*column, bottom+footer, title), s}
	d.text("head", "start", between, 26, title)
	for _, p := range panels {
		b := box{
			column*float64(p.GridPos.X) + between/2, header + row*float64(p.GridPos.Y),
			column*float64(p.GridPos.W) - between, row*float64(p.GridPos.H) - between,
		}
		d.rect("panel", b)
		d.text("title", "start", b.x+8, b.y+17, p.Title)
		if p.Type == "stat" {
			d.stat(p, b)
		} else {
			d.lines(p, b)
		}
	}
	x := between
	for i, t := range troubles {
		label := fmt.Sprintf("%d  %s", i+1, t.what)
		d.text("quiet", "start", x, bottom+16, label)
		x += letter*float64(len(label)) + 30
	}
	return d.end()
}

// stat draws the last value of a panel, above its line.
func (d drawing) stat(p shown, b box) {
	a := d.area(p, box{b.x, b.y + 0.7*b.h, b.w, 0.3 * b.h})
	last := math.NaN()
	for _, l := range p.lines {
		last = l.points[len(l.points)-1].F
		d.path(colours[0], a.path(l.points, d.millis(d.s.interval)))
	}
	defaults, digits := p.FieldConfig.Defaults, 2
	if defaults.Decimals != nil {
		digits = *defaults.Decimals
	}
	last = math.Round(last*math.Pow10(digits)) / math.Pow10(digits)
	d.text("value", "middle", b.x+b.w/2, b.y+0.62*b.h, inUnit(last, defaults.Unit))
}

// lines draws the lines of a panel, with axes and their names.
func (d drawing) lines(p shown, b box) {
	names := d.legend(p, b)
	a := d.area(p, box{b.x + 52, b.y + 32, b.w - 64, b.h - 52 - names})
	d.troubles(a)
	for _, v := range ticks(a.top) {
		y := a.atY(v)
		d.element(`<path class="grid" d="M%.1f %.1fh%.1f"/>`, a.x, y, a.w)
		d.text("quiet", "end", a.x-5, y+4, inUnit(v, p.FieldConfig.Defaults.Unit))
	}
	minutes := int(d.s.end.Sub(d.s.start) / time.Minute)
	for minute := range minutes + 1 {
		x := a.atX(a.from + d.millis(time.Duration(minute)*time.Minute))
		d.text("quiet", "middle", x, a.y+a.h+14, fmt.Sprintf("%d min", minute))
	}
	for i, l := range p.lines {
		d.path(colours[i%len(colours)], a.path(l.points, d.millis(d.s.interval)))
	}
}

// legend writes the names of the lines at the lower edge of a panel, and returns its height.
func (d drawing) legend(p shown, b box) (height float64) {
	type entry struct{ x, y float64 }
	var entries []entry
	x, y := b.x+10, 0.0
	for _, l := range p.lines {
		width := letter*float64(len(l.name)) + 26
		if x+width > b.x+b.w && x > b.x+10 {
			x, y = b.x+10, y+legendLine
		}
		entries = append(entries, entry{x, y})
		x += width
	}
	height = y + legendLine
	for i, l := range p.lines {
		at := entries[i]
		below := b.y + b.h - height + at.y + 8
		d.path(colours[i%len(colours)], fmt.Sprintf("M%.1f %.1fh10", at.x, below-4))
		d.text("quiet", "start", at.x+14, below, l.name)
	}
	return height
}

// area returns the area of a panel's lines.
func (d drawing) area(p shown, b box) area {
	a := area{b, d.millis(time.Duration(d.s.start.UnixNano())), d.millis(time.Duration(d.s.end.UnixNano())), 0}
	for _, l := range p.lines {
		for _, point := range l.points {
			if !math.IsNaN(point.F) {
				a.top = max(a.top, 1.08*point.F)
			}
		}
	}
	if most := p.FieldConfig.Defaults.Max; most != nil {
		a.top = *most
	}
	if a.top == 0 {
		a.top = 1
	}
	return a
}

// troubles marks when they happened.
func (d drawing) troubles(a area) {
	for i, t := range troubles {
		at := func(part float64) float64 { return a.x + part*a.w }
		d.rect("trouble", box{at(t.from), a.y, max(at(t.until)-at(t.from), 1), a.h})
		d.text("quiet", "start", at(t.from), a.y-2, fmt.Sprint(i+1))
	}
}

func (drawing) millis(d time.Duration) float64 { return float64(d.Milliseconds()) }
