package main

import (
	"bytes"
	"fmt"
	"html"
)

// The colours of lines, which can be told apart on a light page and on a dark one.
var colours = []string{"#3274d9", "#e0752d", "#56a64b", "#c4162a", "#8f3bb8", "#b8860b"}

// style is what the classes of the elements look like.
const style = `
svg { font: 11px system-ui, sans-serif; background: #f4f5f5 }
text { fill: #24292e }
.panel { fill: #fff; stroke: #d8d9da }
.title { font-weight: 600; font-size: 12px }
.head { font-weight: 600; font-size: 16px }
.value { font-size: 30px; text-anchor: middle }
.quiet { fill: #6a7178 }
.grid { stroke: #e4e5e6 }
.trouble { fill: #c4162a; fill-opacity: .08; stroke: #c4162a; stroke-opacity: .3; stroke-dasharray: 2 2 }
.line { fill: none; stroke-width: 1.4; stroke-linejoin: round; stroke-linecap: round }
@media (prefers-color-scheme: dark) {
svg { background: #111217 }
text { fill: #ccccdc }
.panel { fill: #181b1f; stroke: #2d3035 }
.quiet { fill: #8e8e99 }
.grid { stroke: #2d3035 }
}
`

// A box is a part of the picture, in pixels.
type box struct{ x, y, w, h float64 }

// A picture is an SVG that is being written.
type picture struct {
	bytes.Buffer
}

func newPicture(width, height float64, title string) *picture {
	p := new(picture)
	p.element(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img">`, width, height, width, height)
	p.element("<title>%s</title>", html.EscapeString(title))
	p.element("<style>%s</style>", style)
	return p
}

// element writes a line.
func (p *picture) element(format string, args ...any) {
	fmt.Fprintf(&p.Buffer, format+"\n", args...)
}

func (p *picture) rect(class string, b box) {
	p.element(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, class, b.x, b.y, b.w, b.h)
}

// text writes text that begins, ends or has its middle at a point.
func (p *picture) text(class, anchor string, x, y float64, text string) {
	p.element(`<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, class, anchor, x, y, html.EscapeString(text))
}

// path draws along commands of SVG.
func (p *picture) path(colour, commands string) {
	p.element(`<path class="line" stroke="%s" d="%s"/>`, colour, commands)
}

// end returns the picture.
func (p *picture) end() []byte {
	p.element("</svg>")
	return p.Bytes()
}
