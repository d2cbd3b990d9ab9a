package process

import "bytes"

// statFields returns the fields of a stat file of proc(5) from the third on, the
// state. The second is the command's name, which may contain any characters.
func statFields(stat []byte) [][]byte {
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}
