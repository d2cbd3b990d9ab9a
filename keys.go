package sqllock

import (
	"crypto/md5" //nolint:gosec // Spring's mapping, not a secret
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLockKey is the width of LOCK_KEY: CHAR(36), in characters.
const maxLockKey = 36

// A KeyMapper maps the key that a user writes to the LOCK_KEY of its row.
// Different keys should have different rows; the same key must always have the
// same. It returns an [ErrInvalid] for a key that it cannot map. A mapper of
// your own must keep to 36 characters; [PlainKeys] shows what databases do to
// others.
type KeyMapper func(key string) (lockKey string, err error)

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// SpringKeys is the default [KeyMapper]: Spring Integration's own mapping
// (UUIDConverter), so that Java and Go meet on one row. A key in UUID form is
// kept, in lower case. Any other key becomes the name-based UUID (MD5, version
// 3, without a namespace) of its UTF-8 bytes, as java.util.UUID.nameUUIDFromBytes
// makes it. A key may have any length; the empty key and invalid UTF-8 (which
// Java cannot write) give [ErrInvalid].
func SpringKeys(key string) (string, error) {
	switch {
	case key == "":
		return "", invalid("the key is empty")
	case !utf8.ValidString(key):
		return "", invalid("key %q is not valid UTF-8", key)
	case len(key) == maxLockKey && uuidForm.MatchString(key): // the length first: it is in each call, and usually no UUID
		return strings.ToLower(key), nil
	}
	sum := md5.Sum([]byte(key)) //nolint:gosec // see the import
	sum[6] = sum[6]&0x0f | 0x30 // version 3
	sum[8] = sum[8]&0x3f | 0x80 // the variant of RFC 9562
	var text [maxLockKey]byte
	to := text[:0]
	for i, part := range [][]byte{sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:]} {
		if i > 0 {
			to = append(to, '-')
		}
		to = hex.AppendEncode(to, part)
	}
	return string(to), nil
}

// PlainKeys is the [KeyMapper] that keeps keys as they are, readable in the
// table. A key has 1 to 36 characters; control characters and a blank at the
// end, which databases drop or take for padding, give [ErrInvalid], as does
// invalid UTF-8.
//
// Java services on the same table must override pathFor to do the same. On
// MySQL the collation of LOCK_KEY must distinguish 'a' from 'A', as the migrated
// table's does, and its character set must be utf8mb4; Spring's own script leaves both
// to the server. [NewRepository] refuses another character set, and a session that
// does not send UTF-8.
func PlainKeys(key string) (string, error) {
	if err := checkText("key", key, maxLockKey); err != nil {
		return "", err
	}
	return key, nil
}

// checkText refuses what a CHAR or VARCHAR column would not give back as it was
// given on every database.
func checkText(what, text string, longest int) error {
	switch n := utf8.RuneCountInString(text); {
	case text == "":
		return invalid("the %s is empty", what)
	case !utf8.ValidString(text):
		return invalid("%s %q is not valid UTF-8", what, text)
	case n > longest:
		return invalid("%s %q has %d characters, the limit is %d", what, text, n, longest)
	case strings.HasSuffix(text, " "):
		return invalid("%s %q ends in a blank", what, text)
	case strings.ContainsFunc(text, unicode.IsControl):
		return invalid("%s %q has a control character", what, text)
	}
	return nil
}
