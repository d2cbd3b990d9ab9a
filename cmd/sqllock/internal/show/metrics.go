package show

import (
	"io"
	"strconv"
	"strings"
	"time"
)

// A metric is one of those that [writeJobMetrics] prints, under the name that monitor/prometheus has for a process.
type metric struct {
	name, kind, help string
	samples          func(v jobView, now time.Time, sample func(value float64, labels ...string))
}

// instant returns a time that was so many seconds ago, in seconds since 1970.
func instant(now time.Time, ago float64) float64 { return float64(now.UnixMilli())/1000 - ago }

var jobMetrics = []metric{
	{"sqllock_job_runs_total", "counter", "Runs of jobs on all hosts, also those that were skipped.", func(v jobView, _ time.Time, sample func(float64, ...string)) {
		sample(float64(v.Runs-v.Failures), "outcome", "ran")
		sample(float64(v.Failures), "outcome", "failed")
		sample(float64(v.Skips), "outcome", "skipped")
	}},
	{"sqllock_job_last_success_timestamp_seconds", "gauge", "When a run of the job last ended without an error.", func(v jobView, now time.Time, sample func(float64, ...string)) {
		if v.Succeeded != nil {
			sample(instant(now, *v.Succeeded))
		}
	}},
	{"sqllock_job_last_duration_seconds", "gauge", "How long the last run of the job took.", func(v jobView, _ time.Time, sample func(float64, ...string)) {
		if v.Took != nil {
			sample(*v.Took)
		}
	}},
	{"sqllock_job_last_end_timestamp_seconds", "gauge", "When the last run of the job ended.", func(v jobView, now time.Time, sample func(float64, ...string)) {
		if v.Ended != nil {
			sample(instant(now, *v.Ended))
		}
	}},
	{"sqllock_job_last_exit_code", "gauge", "The exit code of the last run of a command.", func(v jobView, _ time.Time, sample func(float64, ...string)) {
		if v.Code != nil {
			sample(float64(*v.Code))
		}
	}},
}

// writeJobMetrics prints metrics in the text format of Prometheus.
func writeJobMetrics(w io.Writer, views []jobView, now time.Time) error {
	var text strings.Builder
	for _, m := range jobMetrics {
		text.WriteString("# HELP " + m.name + " " + m.help + "\n# TYPE " + m.name + " " + m.kind + "\n")
		seen := make(map[[2]string]bool)
		for _, v := range views {
			job := [2]string{v.name(), v.Region}
			if seen[job] { // of keys that were cut: a series that is there twice makes the file invalid
				job[0] = v.LockKey
			}
			seen[job] = true
			m.samples(v, now, func(value float64, more ...string) {
				text.WriteString(m.name + "{" + label("name", job[0]) + "," + label("region", job[1]))
				for i := 0; i < len(more); i += 2 {
					text.WriteString("," + label(more[i], more[i+1]))
				}
				text.WriteString("} " + strconv.FormatFloat(value, 'f', -1, 64) + "\n")
			})
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func label(name, value string) string {
	return name + `="` + labelEscapes.Replace(strings.ToValidUTF8(value, "\uFFFD")) + `"`
}
