// SPDX-License-Identifier: Apache-2.0

// Package trialname gives the trials of an experiment their names.
//
// Katib names a trial after its experiment and eight characters of [0-9a-z].
// There they are random; here they encode the trial's index among the
// suggestions, mixed with the UID of the experiment:
//
//	code = (a·index + b) mod 36⁸,  a and b from a hash of the UID, a prime to 36
//
// The map is one to one, so that two trials of one experiment never share a
// name, creating trial 17 twice is AlreadyExists and never a duplicate, and the
// index can be read back from a name without a table.
//
// Katib rejects experiments with names longer than 40 characters. Here their
// trials get a shortened name that ends with a hash of the whole, so that the
// names of a trial's objects, which add suffixes, are as short as in Katib.
package trialname

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	digits   = "0123456789abcdefghijklmnopqrstuvwxyz"
	codeLen  = 8
	codes    = 36 * 36 * 36 * 36 * 36 * 36 * 36 * 36 // 2.8e12, below 2⁴²
	codeBase = uint64(len(digits))
	// longest is how long the experiment's part of a name may be, as in Katib.
	longest = 40
)

// Prefix is the prefix of the names of an experiment's trials: its own name, or,
// if that exceeds 40 characters, the first 31 and a hash.
func Prefix(experiment string) string {
	if len(experiment) <= longest {
		return experiment
	}
	sum := sha256.Sum256([]byte("diwan experiment name\x00" + experiment))
	code := binary.BigEndian.Uint64(sum[:8]) % codes
	kept := strings.TrimRight(experiment[:longest-codeLen-1], "-.") // no part of a name ends with these
	return kept + "-" + spell(code)
}

// Of is the name of the trial with this index, from 0, of the experiment with
// this name and UID: "<prefix>-<8 characters>".
func Of(experiment string, uid types.UID, index int) string {
	a, b := key(uid)
	return Prefix(experiment) + "-" + spell((mulmod(a, uint64(index)%codes)+b)%codes)
}

// spell writes a code in eight characters.
func spell(code uint64) string {
	var text [codeLen]byte
	for i := codeLen - 1; i >= 0; i-- {
		text[i] = digits[code%codeBase]
		code /= codeBase
	}
	return string(text[:])
}

// Index is the inverse of Of for the trials with an index below count. It is
// false for a name that Of gives to none of them, such as one made by Katib.
func Index(experiment string, uid types.UID, name string, count int) (int, bool) {
	text, ok := strings.CutPrefix(name, Prefix(experiment)+"-")
	if !ok || len(text) != codeLen {
		return 0, false
	}
	var code uint64
	for i := range codeLen {
		digit := strings.IndexByte(digits, text[i])
		if digit < 0 {
			return 0, false
		}
		code = code*codeBase + uint64(digit)
	}
	a, b := key(uid)
	index := mulmod(inverse(a), (code+codes-b)%codes)
	return int(index), index < uint64(count)
}

// key derives the multiplier, which is prime to 36, and the offset.
func key(uid types.UID) (a, b uint64) {
	sum := sha256.Sum256([]byte("diwan trial name\x00" + string(uid)))
	a = binary.BigEndian.Uint64(sum[:8]) % codes
	a -= a % 6
	return a + 1, binary.BigEndian.Uint64(sum[8:16]) % codes
}

func mulmod(x, y uint64) uint64 {
	var z big.Int
	z.Mul(new(big.Int).SetUint64(x), new(big.Int).SetUint64(y))
	return z.Mod(&z, big.NewInt(codes)).Uint64()
}

func inverse(a uint64) uint64 {
	return new(big.Int).ModInverse(new(big.Int).SetUint64(a), big.NewInt(codes)).Uint64()
}
