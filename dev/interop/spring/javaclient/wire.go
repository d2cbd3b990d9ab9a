package javaclient

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// A line consists of fields separated by blanks, each encoded as in a URL's query. So keys can
// contain any characters, and both languages have the encoding in their libraries.
func encodeLine(fields ...string) string {
	encoded := make([]string, len(fields))
	for i, field := range fields {
		encoded[i] = url.QueryEscape(field)
	}
	return strings.Join(encoded, " ")
}

func decodeLine(line string) (fields []string, err error) {
	for field := range strings.SplitSeq(line, " ") {
		decoded, err := url.QueryUnescape(field)
		if err != nil {
			return nil, err
		}
		fields = append(fields, decoded)
	}
	return fields, nil
}

var errProtocol = errors.New("an answer that is none")

// An answer is the result of a request.
type answer struct {
	values []string
	err    error
}

// parseAnswer reads "NUMBER ok VALUE..." or "NUMBER error CLASS MESSAGE".
func parseAnswer(line string) (number string, a answer, err error) {
	fields, err := decodeLine(line)
	switch {
	case err != nil:
		return "", a, fmt.Errorf("%w: %q: %w", errProtocol, line, err)
	case len(fields) >= 2 && fields[1] == "ok":
		return fields[0], answer{values: fields[2:]}, nil
	case len(fields) == 4 && fields[1] == "error":
		return fields[0], answer{err: &JavaError{Class: fields[2], Message: fields[3]}}, nil
	default:
		return "", a, fmt.Errorf("%w: %q", errProtocol, line)
	}
}
