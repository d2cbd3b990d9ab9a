package top

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// The size of a letter in a screenshot, in pixels, and the space around the text.
const (
	letterWidth  = 8
	letterHeight = 18
	screenMargin = 12
)

// styleOfScreen has a class for each of the attributes that top uses, by its number in the sequences of
// a terminal.
const styleOfScreen = `
svg { background: #1e1e2a; border-radius: 6px }
text { fill: #d6d6e0; font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre }
.a1 { font-weight: bold } .a2 { fill: #83839a } .a31 { fill: #ff6b6b } .a33 { fill: #f0c050 } .a36 { fill: #4cc3d9 }
rect { fill: #d6d6e0 } .a7 { fill: #1e1e2a }
`

// screenshot draws the lines of a screen, with the sequences that a terminal would obey, as an SVG.
func screenshot(lines []string, width int) string {
	var svg strings.Builder
	w, h := width*letterWidth+2*screenMargin, len(lines)*letterHeight+2*screenMargin
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", w, h, w, h)
	fmt.Fprintf(&svg, "<title>sqllock top</title>\n<style>%s</style>\n", styleOfScreen)
	for i, line := range lines {
		y, column := screenMargin+i*letterHeight, 0
		for _, r := range runsOf(line) {
			x, columns := screenMargin+column*letterWidth, text.StringWidthWithoutEscSequences(r.text)
			column += columns
			reversed := strings.Contains(r.class, "a7")
			if reversed {
				fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="%d" height="%d"/>`+"\n", x, y, columns*letterWidth, letterHeight)
			}
			if strings.TrimSpace(r.text) != "" {
				fmt.Fprintf(&svg, `<text class="%s" x="%d" y="%d" textLength="%d" xml:space="preserve">%s</text>`+"\n",
					r.class, x, y+13, columns*letterWidth, html.EscapeString(r.text))
			}
		}
	}
	return svg.String() + "</svg>\n"
}

// A run is text that looks the same.
type run struct{ class, text string }

// runsOf cuts a line at the sequences that change how text looks. Others have no meaning for a picture.
func runsOf(line string) (runs []run) {
	var class string
	for line != "" {
		plain, after, found := strings.Cut(line, "\x1b[")
		if plain != "" {
			runs = append(runs, run{strings.TrimSpace(class), plain})
		}
		if !found {
			break
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r >= '@' })
		if after[end] == 'm' {
			for number := range strings.SplitSeq(after[:end], ";") {
				if n, _ := strconv.Atoi(number); n == 0 {
					class = ""
				} else {
					class += " a" + number
				}
			}
		}
		line = after[end+1:]
	}
	return runs
}
