package page

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"os"
	"strings"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// passwordVariable has the password if no file is named. No flag has it: other users of the machine
// can see the arguments of a running program.
const passwordVariable = "SQLLOCK_PAGE_PASSWORD"

// password returns the password that viewers need, or "" if they need none. An empty one is refused:
// an operator who sets it expects the page to ask for it.
func password(file string) (string, error) {
	secret, set := os.LookupEnv(passwordVariable)
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", exit.Usagef("--password-file: %w", err)
		}
		secret, set = strings.TrimRight(string(text), "\r\n"), true
	}
	if set && secret == "" {
		return "", exit.Usagef("the password of the page is empty")
	}
	return secret, nil
}

// protected asks for a password before each request: HTTP basic authentication, with any user name. How long the
// answer takes does not depend on how much of the password is right.
func protected(secret string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(secret))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, given, _ := r.BasicAuth()
		if got := sha256.Sum256([]byte(given)); subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="sqllock", charset="UTF-8"`)
			http.Error(w, "the page needs a password", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
