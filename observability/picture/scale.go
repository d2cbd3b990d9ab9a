package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql"
)

// An area is where lines are drawn: a box, with what its axes stand for.
type area struct {
	box
	from, until float64 // milliseconds
	top         float64 // the value at the upper edge; that of the lower one is 0
}

func (a area) atX(t float64) float64 { return a.x + a.w*(t-a.from)/(a.until-a.from) }
func (a area) atY(v float64) float64 { return a.y + a.h*(1-min(v/a.top, 1)) }

// path returns the commands of SVG for a line. Where a sample is missing the line has a gap; points
// that are on the way from one to the next are left out.
func (a area) path(points []promql.FPoint, interval float64) string {
	var path strings.Builder
	gap := func(i int) bool {
		return i == 0 || i == len(points) || float64(points[i].T-points[i-1].T) > 1.5*interval || math.IsNaN(points[i-1].F)
	}
	for i, point := range points {
		x, y := a.atX(float64(point.T)), a.atY(point.F)
		switch {
		case math.IsNaN(point.F):
		case gap(i):
			fmt.Fprintf(&path, "M%.1f %.1fh0", x, y)
		case !gap(i+1) && point.F == points[i-1].F && point.F == points[i+1].F:
		default:
			fmt.Fprintf(&path, "L%.1f %.1f", x, y)
		}
	}
	return path.String()
}

// ticks returns values from 0 to a top, of 1, 2 or 5 times a power of ten apart.
func ticks(top float64) (all []float64) {
	step := math.Pow10(int(math.Floor(math.Log10(top))))
	for _, part := range []float64{.1, .2, .5, 1, 2} {
		if top/(step*part) <= 5 {
			step *= part
			break
		}
	}
	for v := 0.0; v <= top*1.0001; v += step {
		all = append(all, v)
	}
	return all
}

// inUnit writes a value in a unit of Grafana.
func inUnit(v float64, unit string) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	switch {
	case math.IsNaN(v):
		return "–"
	case unit == "percentunit":
		return number(100*v) + " %"
	case unit == "s" && v != 0 && v < 1:
		return number(1000*v) + " ms"
	case unit == "s":
		return number(v) + " s"
	case unit == "ops":
		return number(v) + "/s"
	default:
		return number(v)
	}
}
