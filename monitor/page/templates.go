package page

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"sync"

	"github.com/sqllock/sqllock/internal/printable"
)

//go:embed assets
var assets embed.FS

// templates parses when the first page is rendered: a command that shows none starts in a millisecond less.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"text":     printable.Text, // of the table
		"duration": func(seconds float64) string { return duration(ofSeconds(seconds)) },
	}).ParseFS(assets, "assets/*.html"))
})

// render writes a page, or an error if the template fails.
func render(w http.ResponseWriter, status int, name string, data any) {
	var text bytes.Buffer
	if err := templates().ExecuteTemplate(&text, name, data); err != nil {
		http.Error(w, "sqllock: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // a viewer that has left is no error
}
