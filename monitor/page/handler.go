package page

import (
	"net/http"
	"path"
	"strings"

	"github.com/sqllock/sqllock"
)

// Handler returns the page of the table that registry uses. What is particular to this process,
// its leases and the callers that wait, is the registry's. opts may be nil. The handler starts
// nothing that has to be ended, and may be used until the registry is closed.
func Handler(registry *sqllock.Registry, opts *Options) http.Handler {
	o := opts.completed()
	return handler{&page{registry: registry, options: o, reader: newReader(registry, o), checks: &checks{run: o.Check}}}
}

// A handler leads requests to what answers them.
type handler struct{ *page }

// policy allows the page nothing but its own style, script and requests.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP implements http.Handler. What is asked for is the last element of the path, whatever
// stands before it.
func (p handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer, with which browsers send forms without their origin.
	h.Set("Referrer-Policy", "same-origin")
	if asked, _, _ := strings.Cut(r.RequestURI, "?"); r.URL.Path == "" && !strings.HasSuffix(asked, "/") {
		redirectToSlash(w, r)
		return
	}
	_, name := path.Split(r.URL.Path)
	if r.Method == http.MethodPost && name == "unlock" {
		p.unlock(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	switch name {
	case "", "live":
		p.show(w, r, name)
	case "locks.json":
		p.serveJSON(w, r)
	case "unlock":
		p.confirm(w, r)
	case "style.css", "script.js", "icon.svg":
		http.ServeFileFS(w, r, assets, "assets/"+name)
	default:
		http.NotFound(w, r)
	}
}

// show writes the page of the table, or of the lock that the query names, or only what of it changes.
func (p *page) show(w http.ResponseWriter, r *http.Request, name string) {
	q := p.queryOf(r.URL.Query())
	templates := map[string]string{"": "page.html", "live": "live"}
	if q.Lock != (lockID{}) {
		templates = map[string]string{"": "lock.html", "live": "lock"}
	}
	render(w, http.StatusOK, templates[name], p.view(r.Context(), q))
}

// redirectToSlash redirects to the path of the page as the browser knows it, with a slash: without
// one, relative links would lead to the place above. A router has removed the path.
func redirectToSlash(w http.ResponseWriter, r *http.Request) {
	asked, parameters, _ := strings.Cut(r.RequestURI, "?")
	location := "./" + path.Base(asked) + "/"
	if parameters != "" {
		location += "?" + parameters
	}
	w.Header().Set("Location", location) // http.Redirect would add what is left of the path
	w.WriteHeader(http.StatusMovedPermanently)
}
