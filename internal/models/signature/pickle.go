// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A pickle is a program for a stack machine that calls whatever it names. Here the
// machine runs with data alone: a call makes a [pyObject] that says what would be
// called, and nothing else happens. Values that a pickle refers to twice are shared, so
// that a small pickle cannot become large.

// pyValue is None (nil), bool, int64, float64, string, *pyBytes, *pyTuple, *pyList,
// *pyDict, pyGlobal, *pyObject or pyOpaque.
type pyValue = any

type pyTuple struct{ items []pyValue }

// pyList is a list or a set.
type pyList struct{ items []pyValue }

type pyDict struct{ keys, values []pyValue }

// pyBytes is a byte string, of which long ones are not kept.
type pyBytes struct {
	size int64
	data []byte
}

// pyGlobal is a class or function by name.
type pyGlobal struct{ module, name string }

func (g pyGlobal) String() string { return g.module + "." + g.name }

// pyObject is what calling a class or function gives, or what a persistent id stands for.
type pyObject struct {
	class      pyValue
	args       pyValue
	state      pyValue
	items      pyList
	dict       pyDict
	persistent bool
}

// pyOpaque is a value that does not matter, such as a number of more than 64 bits.
type pyOpaque struct{}

// pyMark is a mark on the stack.
type pyMark struct{}

// keptBytes is the longest byte string that is kept: labels are shorter, weights longer.
const keptBytes = 4096

// pickleInput is read in sequence: a file, in which skipping costs nothing, or a stream.
type pickleInput struct {
	f      *file
	stream *bufio.Reader
	at     int64
}

// peek returns n bytes, at most windowSize.
func (in *pickleInput) peek(n int) ([]byte, error) {
	if in.stream == nil {
		return in.f.need(in.at, n)
	}
	data, err := in.stream.Peek(n)
	if errors.Is(err, io.EOF) {
		err = errors.New("it ends in the middle of a value")
	}
	return data, err
}

func (in *pickleInput) advance(n int64) error {
	if in.stream == nil {
		if err := in.f.span(in.at, n, "a value"); err != nil {
			return err
		}
		in.at += n
		return nil
	}
	for n > 0 {
		step, err := in.stream.Discard(int(min(n, 1<<20)))
		in.at += int64(step)
		n -= int64(step)
		if err != nil {
			return fmt.Errorf("a value is cut off: %w", err)
		}
	}
	return nil
}

func (in *pickleInput) take(n int) ([]byte, error) {
	data, err := in.peek(n)
	if err != nil {
		return nil, err
	}
	if in.stream != nil {
		data = bytes.Clone(data)
	}
	return data, in.advance(int64(n))
}

// line is a line without its end, of at most windowSize bytes.
func (in *pickleInput) line() (string, error) {
	for n := 64; ; n *= 4 {
		n = min(n, windowSize)
		var data []byte
		var err error
		if in.stream != nil {
			if data, err = in.stream.Peek(n); len(data) > 0 {
				err = nil
			}
		} else {
			data, err = in.f.peek(in.at, n)
		}
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			text := string(data[:end])
			return text, in.advance(int64(end) + 1)
		}
		if len(data) < n {
			return "", errors.New("it ends in the middle of a line")
		}
		if n == windowSize {
			return "", fmt.Errorf("a line has more than %d bytes", windowSize)
		}
	}
}

// pickleMachine runs a pickle.
type pickleMachine struct {
	*budget
	in      *pickleInput
	stack   []pyValue
	memo    map[uint64]pyValue
	depth   int
	globals map[pyGlobal]bool
	// unsafe are the reasons for which loading would be unsafe, beyond what is named.
	unsafe map[string]bool
	// trees are the decision trees of scikit-learn.
	trees []*pyObject
}

// unpickle runs a pickle up to its end and returns what it leaves.
func (r *reading) unpickle(in *pickleInput) (*pickleMachine, pyValue, error) {
	m := &pickleMachine{budget: r.budget, in: in, globals: map[pyGlobal]bool{}, unsafe: map[string]bool{}}
	value, err := m.run()
	if err != nil {
		return nil, nil, in.f.fail(in.at, err)
	}
	for global := range m.globals {
		name := global.String()
		r.sig.Callables = append(r.sig.Callables, name)
		if dangerous(global) {
			m.unsafe[name] = true
		}
	}
	for name := range m.unsafe {
		if !slices.Contains(r.sig.Unsafe, name) {
			r.sig.Unsafe = append(r.sig.Unsafe, name)
		}
	}
	slices.Sort(r.sig.Callables)
	r.sig.Callables = slices.Compact(r.sig.Callables)
	return m, value, nil
}

// dangerousModules are modules any of whose functions runs code, starts programs, reaches
// the network or changes files.
var dangerousModules = words(`os posix nt posixpath ntpath subprocess sys shutil socket importlib runpy pickle _pickle
		cPickle marshal types ctypes _ctypes webbrowser pty pdb bdb code codeop commands popen2 asyncio multiprocessing threading
		_thread signal tempfile pathlib io _io zipimport pkgutil imp inspect gc timeit cProfile profile trace doctest unittest
		requests urllib http ftplib smtplib telnetlib xmlrpc ssl select mmap fcntl venv ensurepip pip setuptools distutils
		pydoc site linecache builtins __builtin__ operator functools dill cloudpickle joblib.numpy_pickle_utils logging.config
		torch.hub torch.jit torch.load torch.serialization torch.utils.cpp_extension torch.utils._config_module torch._inductor torch._dynamo numpy.testing
		numpy.f2py numpy.distutils numpy.load IPython lib2to3 idlelib uuid platform aiohttp tornado pandas.io.pickle`)

// harmless are names of dangerous modules that make data.
var harmless = words(`builtins.set builtins.frozenset builtins.list builtins.dict builtins.tuple builtins.object
		builtins.int builtins.float builtins.complex builtins.bool builtins.str builtins.bytes builtins.bytearray builtins.slice builtins.range
		__builtin__.set __builtin__.frozenset __builtin__.list __builtin__.dict __builtin__.tuple __builtin__.object __builtin__.int
		__builtin__.long __builtin__.float __builtin__.complex __builtin__.bool __builtin__.str __builtin__.unicode __builtin__.bytearray
		__builtin__.slice __builtin__.xrange types.SimpleNamespace pathlib.Path pathlib.PosixPath pathlib.PurePosixPath pathlib.WindowsPath uuid.UUID
		functools.partial joblib.numpy_pickle.NumpyArrayWrapper`)

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// dangerous reports whether a global can run arbitrary code.
func dangerous(g pyGlobal) bool {
	if harmless[g.String()] {
		return false
	}
	full := g.String()
	for i, c := range full {
		if c == '.' && dangerousModules[full[:i]] {
			return true
		}
	}
	return dangerousModules[full]
}

var errStack = errors.New("it takes more from the stack than there is")

func (m *pickleMachine) push(v pyValue) error {
	m.stack = append(m.stack, v)
	return m.hold(32)
}

func (m *pickleMachine) pop() (pyValue, error) {
	if len(m.stack) == 0 {
		return nil, errStack
	}
	v := m.stack[len(m.stack)-1]
	if _, mark := v.(pyMark); mark {
		return nil, errStack
	}
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

func (m *pickleMachine) top() (pyValue, error) {
	v, err := m.pop()
	if err == nil {
		m.stack = append(m.stack, v)
	}
	return v, err
}

// popMark takes everything above the last mark, and the mark.
func (m *pickleMachine) popMark() ([]pyValue, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, mark := m.stack[i].(pyMark); mark {
			items := slices.Clone(m.stack[i+1:])
			m.stack = m.stack[:i]
			return items, m.visitAll(int64(len(items)))
		}
	}
	return nil, errors.New("it goes back to a mark that is not there")
}

// text reads n bytes as a string.
func (m *pickleMachine) text(n uint64) (string, error) {
	if n > uint64(max(0, m.memory)) {
		return "", &LimitError{"Memory", m.limits.Memory}
	}
	if m.in.stream == nil && n > uint64(m.in.f.size-m.in.at) {
		return "", fmt.Errorf("a text claims %d bytes, more than the rest of the file", n)
	}
	if err := m.hold(int64(n)); err != nil {
		return "", err
	}
	var text strings.Builder
	for n > 0 {
		part, err := m.in.take(int(min(n, 4096)))
		if err != nil {
			return "", err
		}
		text.Write(part)
		n -= uint64(len(part))
	}
	if !utf8.ValidString(text.String()) {
		return strings.ToValidUTF8(text.String(), "\ufffd"), nil
	}
	return text.String(), nil
}

// bytes reads a byte string of n bytes.
func (m *pickleMachine) bytes(n uint64) (*pyBytes, error) {
	if n > math.MaxInt64 {
		return nil, fmt.Errorf("a value claims %d bytes", n)
	}
	b := &pyBytes{size: int64(n)}
	if n > keptBytes {
		return b, m.in.advance(int64(n))
	}
	if err := m.hold(int64(n)); err != nil {
		return nil, err
	}
	data, err := m.in.take(int(n))
	b.data = bytes.Clone(data)
	return b, err
}

func (m *pickleMachine) uint(n int) (uint64, error) {
	data, err := m.in.take(n)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[:], data)
	return little.Uint64(wide[:]), nil
}

func (m *pickleMachine) put(index uint64) error {
	v, err := m.top()
	if err != nil {
		return err
	}
	m.memo[index] = v
	return m.hold(32)
}

func (m *pickleMachine) get(index uint64) error {
	v, known := m.memo[index]
	if !known {
		return fmt.Errorf("it refers to value %d, which it has not stored", index)
	}
	return m.push(v)
}

// run runs up to STOP.
func (m *pickleMachine) run() (pyValue, error) {
	m.memo = map[uint64]pyValue{}
	for {
		if err := m.visit(); err != nil {
			return nil, err
		}
		op, err := m.in.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == '.' {
			return m.pop()
		}
		if err := m.step(op[0]); err != nil {
			return nil, err
		}
	}
}

// step runs one opcode. They are explained in CPython's Lib/pickletools.py.
func (m *pickleMachine) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		version, err := m.uint(1)
		if err == nil && version > 5 {
			err = fmt.Errorf("protocol %d is not known: 0 to 5 are", version)
		}
		return err
	case 0x95: // FRAME
		return m.in.advance(8)
	case '(':
		return m.push(pyMark{})
	case '0': // POP
		if len(m.stack) == 0 {
			return errStack
		}
		m.stack = m.stack[:len(m.stack)-1]
		return nil
	case '1': // POP_MARK
		_, err := m.popMark()
		return err
	case '2': // DUP
		v, err := m.top()
		if err != nil {
			return err
		}
		return m.push(v)
	case 'N':
		return m.push(nil)
	case 0x88, 0x89:
		return m.push(op == 0x88)
	case 'p', 'g': // PUT, GET
		text, err := m.in.line()
		if err != nil {
			return err
		}
		index, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is no number of a stored value", text)
		}
		if op == 'p' {
			return m.put(index)
		}
		return m.get(index)
	case 'q', 'r', 'h', 'j': // BINPUT, LONG_BINPUT, BINGET, LONG_BINGET
		width := 1
		if op == 'r' || op == 'j' {
			width = 4
		}
		index, err := m.uint(width)
		if err != nil {
			return err
		}
		if op == 'q' || op == 'r' {
			return m.put(index)
		}
		return m.get(index)
	case 0x94: // MEMOIZE
		return m.put(uint64(len(m.memo)))
	case 'R', 'b', 'o', 'i', 0x81, 0x92, 'c', 0x93, 'P', 'Q', 0x82, 0x83, 0x84:
		return m.call(op)
	case 't', 'l', 'd', ')', ']', '}', 0x85, 0x86, 0x87, 0x8f, 0x90, 0x91, 'a', 'e', 's', 'u':
		return m.container(op)
	}
	return m.scalar(op)
}

// scalar runs the opcodes of numbers and strings.
func (m *pickleMachine) scalar(op byte) error {
	switch op {
	case 'K', 'M', 'J': // BININT1, BININT2, BININT
		n, err := m.uint(map[byte]int{'K': 1, 'M': 2, 'J': 4}[op])
		if err != nil {
			return err
		}
		if op == 'J' {
			return m.push(int64(int32(n)))
		}
		return m.push(int64(n))
	case 'I', 'L': // INT, LONG
		text, err := m.in.line()
		if err != nil {
			return err
		}
		if op == 'I' && (text == "00" || text == "01") {
			return m.push(text == "01")
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(text, "L"), 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return m.push(pyOpaque{})
		}
		if err != nil {
			return fmt.Errorf("%q is no number", text)
		}
		return m.push(n)
	case 0x8a, 0x8b: // LONG1, LONG4
		width := 1
		if op == 0x8b {
			width = 4
		}
		n, err := m.uint(width)
		if err != nil {
			return err
		}
		if n > 8 {
			if err := m.in.advance(int64(n)); err != nil {
				return err
			}
			return m.push(pyOpaque{})
		}
		value, err := m.uint(int(n))
		if err != nil {
			return err
		}
		shift := 64 - 8*n
		return m.push(int64(value<<shift) >> shift)
	case 'F':
		text, err := m.in.line()
		if err != nil {
			return err
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("%q is no number", text)
		}
		return m.push(value)
	case 'G':
		data, err := m.in.take(8)
		if err != nil {
			return err
		}
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(data)))
	case 'S', 'V': // STRING, UNICODE
		text, err := m.in.line()
		if err != nil {
			return err
		}
		if err := m.hold(int64(len(text))); err != nil {
			return err
		}
		if op == 'S' {
			if len(text) >= 2 && text[0] == text[len(text)-1] && (text[0] == '\'' || text[0] == '"') {
				text = text[1 : len(text)-1]
			}
		} else {
			text = rawUnicode(text)
		}
		return m.push(strings.ToValidUTF8(text, "\ufffd"))
	case 'U', 'T', 0x8c, 'X', 0x8d: // (SHORT_)BINSTRING, (SHORT_)BINUNICODE(8)
		n, err := m.uint(map[byte]int{'U': 1, 'T': 4, 0x8c: 1, 'X': 4, 0x8d: 8}[op])
		if err != nil {
			return err
		}
		text, err := m.text(n)
		if err != nil {
			return err
		}
		return m.push(text)
	case 'C', 'B', 0x8e, 0x96: // (SHORT_)BINBYTES(8), BYTEARRAY8
		n, err := m.uint(map[byte]int{'C': 1, 'B': 4, 0x8e: 8, 0x96: 8}[op])
		if err != nil {
			return err
		}
		value, err := m.bytes(n)
		if err != nil {
			return err
		}
		return m.push(value)
	case 0x97: // NEXT_BUFFER: its data is not in the pickle
		return m.push(pyOpaque{})
	case 0x98: // READONLY_BUFFER
		return nil
	}
	return fmt.Errorf("%#x is no opcode of a pickle", op)
}

// rawUnicode resolves the escapes \uXXXX and \UXXXXXXXX of protocol 0.
func rawUnicode(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (text[i+1] == 'u' || text[i+1] == 'U') {
			width := 4
			if text[i+1] == 'U' {
				width = 8
			}
			if i+2+width <= len(text) {
				if code, err := strconv.ParseUint(text[i+2:i+2+width], 16, 32); err == nil {
					out.WriteRune(rune(code))
					i += 1 + width
					continue
				}
			}
		}
		// Every other byte is a character of Latin-1.
		out.WriteRune(rune(text[i]))
	}
	return out.String()
}

// container runs the opcodes of tuples, lists, dicts and sets.
func (m *pickleMachine) container(op byte) error {
	switch op {
	case ')':
		return m.push(&pyTuple{})
	case ']', 0x8f: // EMPTY_LIST, EMPTY_SET
		return m.push(&pyList{})
	case '}':
		return m.push(&pyDict{})
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		n := int(op-0x85) + 1
		items := make([]pyValue, n)
		for i := n - 1; i >= 0; i-- {
			var err error
			if items[i], err = m.pop(); err != nil {
				return err
			}
		}
		return m.push(&pyTuple{items})
	case 't', 'l', 0x91, 'd': // TUPLE, LIST, FROZENSET, DICT
		items, err := m.popMark()
		if err != nil {
			return err
		}
		switch op {
		case 't':
			return m.push(&pyTuple{items})
		case 'd':
			d := &pyDict{}
			if err := d.set(items); err != nil {
				return err
			}
			return m.push(d)
		}
		return m.push(&pyList{items})
	}
	var items []pyValue
	var err error
	switch op {
	case 'a', 's': // APPEND, SETITEM
		n := 1
		if op == 's' {
			n = 2
		}
		items = make([]pyValue, n)
		for i := n - 1; i >= 0; i-- {
			if items[i], err = m.pop(); err != nil {
				return err
			}
		}
	default: // APPENDS, SETITEMS, ADDITEMS
		if items, err = m.popMark(); err != nil {
			return err
		}
	}
	if err := m.hold(16 * int64(len(items))); err != nil {
		return err
	}
	to, err := m.top()
	if err != nil {
		return err
	}
	named := op == 's' || op == 'u'
	switch to := to.(type) {
	case *pyList:
		if !named {
			to.items = append(to.items, items...)
			return nil
		}
	case *pyDict:
		if named {
			return to.set(items)
		}
	case *pyObject:
		if named {
			return to.dict.set(items)
		}
		to.items.items = append(to.items.items, items...)
		return nil
	}
	return errors.New("it adds an item to something that has none")
}

// set adds keys and values, one after the other.
func (d *pyDict) set(items []pyValue) error {
	if len(items)%2 != 0 {
		return errors.New("a dict has a key without a value")
	}
	for i := 0; i < len(items); i += 2 {
		d.keys, d.values = append(d.keys, items[i]), append(d.values, items[i+1])
	}
	return nil
}

// call runs the opcodes that name, call and restore: what makes pickles unsafe.
func (m *pickleMachine) call(op byte) error {
	if err := m.hold(160); err != nil {
		return err
	}
	switch op {
	case 'c', 'i': // GLOBAL, INST
		module, err := m.in.line()
		if err != nil {
			return err
		}
		name, err := m.in.line()
		if err != nil {
			return err
		}
		if err := m.hold(int64(len(module) + len(name))); err != nil {
			return err
		}
		global := m.global(strings.ToValidUTF8(module, "\ufffd"), strings.ToValidUTF8(name, "\ufffd"))
		if op == 'c' {
			return m.push(global)
		}
		args, err := m.popMark()
		if err != nil {
			return err
		}
		return m.push(m.object(global, &pyTuple{args}))
	case 0x93: // STACK_GLOBAL
		name, err := m.pop()
		if err != nil {
			return err
		}
		module, err := m.pop()
		if err != nil {
			return err
		}
		moduleText, a := module.(string)
		nameText, b := name.(string)
		if !a || !b {
			m.unsafe["a name that is computed"] = true
			return m.push(pyOpaque{})
		}
		return m.push(m.global(moduleText, nameText))
	case 0x82, 0x83, 0x84: // EXT1, EXT2, EXT4
		code, err := m.uint(1 << (op - 0x82))
		if err != nil {
			return err
		}
		return m.push(m.global("copyreg", fmt.Sprintf("extension(%d)", code)))
	case 'R', 0x81: // REDUCE, NEWOBJ
		args, err := m.pop()
		if err != nil {
			return err
		}
		class, err := m.pop()
		if err != nil {
			return err
		}
		return m.push(m.object(class, args))
	case 0x92: // NEWOBJ_EX
		if _, err := m.pop(); err != nil {
			return err
		}
		args, err := m.pop()
		if err != nil {
			return err
		}
		class, err := m.pop()
		if err != nil {
			return err
		}
		return m.push(m.object(class, args))
	case 'o': // OBJ
		items, err := m.popMark()
		if err != nil {
			return err
		}
		if len(items) == 0 {
			return errStack
		}
		return m.push(m.object(items[0], &pyTuple{items[1:]}))
	case 'P': // PERSID
		text, err := m.in.line()
		if err != nil {
			return err
		}
		return m.push(&pyObject{args: text, persistent: true})
	case 'Q': // BINPERSID
		id, err := m.pop()
		if err != nil {
			return err
		}
		return m.push(&pyObject{args: id, persistent: true})
	}
	// BUILD
	state, err := m.pop()
	if err != nil {
		return err
	}
	to, err := m.top()
	if err != nil {
		return err
	}
	object, ok := to.(*pyObject)
	if !ok {
		return nil // something else, such as a class, which gets attributes
	}
	object.state = state
	if class, _ := object.class.(pyGlobal); class.name == "NumpyArrayWrapper" && strings.HasPrefix(class.module, "joblib.") {
		return m.joblibArray(object)
	}
	return nil
}

func (m *pickleMachine) global(module, name string) pyGlobal {
	global := pyGlobal{module, name}
	m.globals[global] = true
	return global
}

// object is what calling class with args gives. Byte strings of protocol 0 to 2 are
// calls, too: those become byte strings.
func (m *pickleMachine) object(class, args pyValue) pyValue {
	global, named := class.(pyGlobal)
	if !named {
		if _, opaque := class.(pyOpaque); !opaque {
			m.unsafe["a callable that is computed"] = true
		}
		return &pyObject{class: class, args: args}
	}
	if global == (pyGlobal{"_codecs", "encode"}) {
		if tuple, ok := args.(*pyTuple); ok && len(tuple.items) == 2 {
			if text, ok := tuple.items[0].(string); ok && tuple.items[1] == "latin1" {
				var data []byte
				for _, c := range text {
					data = append(data, byte(c))
				}
				return &pyBytes{size: int64(len(data)), data: data}
			}
		}
	}
	object := &pyObject{class: class, args: args}
	if global.name == "Tree" && global.module == "sklearn.tree._tree" || global.name == "TreePredictor" {
		m.trees = append(m.trees, object)
	}
	return object
}

// joblibArray passes over the array that joblib writes into the middle of a pickle,
// after the object that describes it: padding, then raw numbers or, for an array of
// objects, another pickle.
func (m *pickleMachine) joblibArray(wrapper *pyObject) error {
	shape, err := m.shape(m.attribute(wrapper, "shape"))
	if err != nil {
		return fmt.Errorf("an array of joblib: %w", err)
	}
	kind := m.dtype(m.attribute(wrapper, "dtype"))
	n, err := shape.elements()
	if err != nil {
		return fmt.Errorf("an array of joblib: %w", err)
	}
	wrapper.class = pyGlobal{"", "array"}
	data := &pyBytes{}
	if kind.objects {
		if err := m.nest(m.depth + 1); err != nil {
			return err
		}
		inner := &pickleMachine{budget: m.budget, in: m.in, depth: m.depth + 1, globals: m.globals, unsafe: m.unsafe}
		value, err := inner.run()
		if err != nil {
			return err
		}
		m.trees = append(m.trees, inner.trees...)
		wrapper.state = value
		return nil
	}
	if kind.size <= 0 {
		return fmt.Errorf("an array of joblib has the unknown type %q", kind.name)
	}
	if _, given := m.attribute(wrapper, "numpy_array_alignment_bytes").(int64); given {
		padding, err := m.uint(1)
		if err != nil {
			return err
		}
		if err := m.in.advance(int64(padding)); err != nil {
			return err
		}
	}
	if n > math.MaxInt64/kind.size {
		return fmt.Errorf("an array of joblib of the shape %v is larger than any file", shape)
	}
	if data, err = m.bytes(uint64(n * kind.size)); err != nil {
		return err
	}
	wrapper.state = &pyArray{kind, shape, data}
	return nil
}

// pyArray is a NumPy array.
type pyArray struct {
	kind  dtype
	shape Shape
	data  *pyBytes
}

// dtype is NumPy's type of elements.
type dtype struct {
	// name is as in Tensor.Type, or NumPy's own for other types.
	name    string
	size    int64
	big     bool
	objects bool
}

var numpyKinds = map[byte]string{'f': "float", 'i': "int", 'u': "uint", 'c': "complex"}

// numpyType reads NumPy's short name of a type: f8, U10, b1, V64.
func numpyType(text string) dtype {
	t := dtype{name: text}
	text = strings.TrimLeft(text, "<>=|")
	if text == "" {
		return t
	}
	digits, _, _ := strings.Cut(text[1:], "[")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 {
		return t
	}
	switch kind := text[0]; kind {
	case 'f', 'i', 'u', 'c':
		t.name, t.size = numpyKinds[kind]+strconv.FormatInt(8*n, 10), n
	case 'b':
		t.name, t.size = "bool", n
	case 'O':
		t.name, t.objects = "object", true
	case 'U':
		t.name, t.size = "string", 4*n
	case 'S':
		t.name, t.size = "string", n
	case 'M', 'm', 'V':
		t.size = n
	}
	return t
}

// dtype reads a NumPy type: the call numpy.dtype('f8', False, True) with the byte order
// in its state.
func (m *pickleMachine) dtype(v pyValue) dtype {
	object, ok := v.(*pyObject)
	if !ok {
		return dtype{}
	}
	args, ok := object.args.(*pyTuple)
	if !ok || len(args.items) == 0 {
		return dtype{}
	}
	text, _ := args.items[0].(string)
	kind := numpyType(text)
	if state, ok := object.state.(*pyTuple); ok && len(state.items) >= 5 {
		kind.big = state.items[1] == ">"
		// A structure that holds objects: its fields tell.
		if fields, ok := state.items[4].(*pyDict); ok && text != "" && text[0] == 'V' {
			for _, field := range fields.values {
				if tuple, ok := field.(*pyTuple); ok && len(tuple.items) > 0 {
					if inner, ok := tuple.items[0].(*pyObject); ok && inner != object {
						if names, ok := inner.args.(*pyTuple); ok && len(names.items) > 0 && names.items[0] == "O8" {
							kind.objects = true
						}
					}
				}
			}
		}
	}
	return kind
}

// shape reads a tuple of integers.
func (m *pickleMachine) shape(v pyValue) (Shape, error) {
	tuple, ok := v.(*pyTuple)
	if !ok {
		return nil, errors.New("its shape is no tuple")
	}
	if err := m.hold(24 * int64(len(tuple.items))); err != nil {
		return nil, err
	}
	shape := Shape{}
	for _, item := range tuple.items {
		n, ok := item.(int64)
		if !ok || n < 0 {
			return nil, fmt.Errorf("a dimension is %v", item)
		}
		shape = append(shape, Dim{Size: n})
	}
	return shape, nil
}

// attribute is an attribute of an object, nil if it has none of that name.
func (m *pickleMachine) attribute(v pyValue, name string) pyValue {
	object, ok := v.(*pyObject)
	if !ok {
		return nil
	}
	state := object.state
	if tuple, ok := state.(*pyTuple); ok {
		// Of classes with slots, the state is a pair; of others it is the first part.
		for _, item := range tuple.items {
			if d, ok := item.(*pyDict); ok {
				if v := m.lookup(d, name); v != nil {
					return v
				}
			}
		}
		return nil
	}
	d, ok := state.(*pyDict)
	if !ok {
		return nil
	}
	return m.lookup(d, name)
}

// lookup is the last value of a key. Its cost counts: a hostile pickle could have one
// large dict looked through many times.
func (m *pickleMachine) lookup(d *pyDict, name string) pyValue {
	if m.visitAll(int64(len(d.keys))) != nil {
		return nil
	}
	for i := len(d.keys) - 1; i >= 0; i-- {
		if d.keys[i] == pyValue(name) {
			return d.values[i]
		}
	}
	return nil
}

// array recognizes a NumPy array in the forms that NumPy and joblib give it.
func (m *pickleMachine) array(v pyValue) *pyArray {
	object, ok := v.(*pyObject)
	if !ok {
		return nil
	}
	class, _ := object.class.(pyGlobal)
	args, _ := object.args.(*pyTuple)
	state, _ := object.state.(*pyTuple)
	switch {
	case class == pyGlobal{"", "array"}:
		array, _ := object.state.(*pyArray)
		return array
	case class.name == "_reconstruct" && strings.HasSuffix(class.module, "core.multiarray") && state != nil && len(state.items) == 5:
		shape, err := m.shape(state.items[1])
		if err != nil {
			return nil
		}
		data, _ := state.items[4].(*pyBytes)
		return &pyArray{m.dtype(state.items[2]), shape, data}
	case class.name == "_frombuffer" && strings.HasSuffix(class.module, "core.numeric") && args != nil && len(args.items) >= 3:
		shape, err := m.shape(args.items[2])
		if err != nil {
			return nil
		}
		data, _ := args.items[0].(*pyBytes)
		return &pyArray{m.dtype(args.items[1]), shape, data}
	}
	return nil
}

// texts are the elements of a short array of labels, as text.
func (m *pickleMachine) texts(v pyValue) []string {
	var items []pyValue
	switch list := v.(type) {
	case *pyList:
		items = list.items
	case *pyTuple:
		items = list.items
	case *pyObject:
		if array := m.array(v); array != nil && !array.kind.objects {
			return m.labels(array)
		}
		// An array of objects has a list for its data; joblib's, another array.
		if state, ok := list.state.(*pyTuple); ok && len(state.items) == 5 {
			if data, ok := state.items[4].(*pyList); ok {
				items = data.items
			}
		}
		if inner, ok := list.state.(*pyObject); ok && inner != list {
			if state, ok := inner.state.(*pyTuple); ok && len(state.items) == 5 {
				if data, ok := state.items[4].(*pyList); ok {
					items = data.items
				}
			}
		}
	}
	if m.hold(48*int64(len(items))) != nil {
		return nil
	}
	var texts []string
	for _, item := range items {
		switch item := item.(type) {
		case string:
			texts = append(texts, item)
		case int64, bool, float64:
			texts = append(texts, fmt.Sprint(item))
		default:
			return nil
		}
	}
	return texts
}

func (m *pickleMachine) labels(a *pyArray) []string {
	if a.data == nil || a.data.data == nil || a.kind.size <= 0 || a.data.size%a.kind.size != 0 || m.hold(24*a.data.size/a.kind.size) != nil {
		return nil
	}
	order := binary.ByteOrder(little)
	if a.kind.big {
		order = binary.BigEndian
	}
	var texts []string
	for data := a.data.data; len(data) > 0; data = data[a.kind.size:] {
		texts = append(texts, label(a.kind, data[:a.kind.size], order))
	}
	return texts
}

// label is an element of an array as Python prints it.
func label(kind dtype, item []byte, order binary.ByteOrder) string {
	switch {
	case kind.name == "bool":
		return map[bool]string{true: "True", false: "False"}[item[0] != 0]
	case kind.name == "string" && len(item)%4 == 0:
		var text strings.Builder
		for ; len(item) > 0; item = item[4:] {
			if c := order.Uint32(item); c != 0 {
				text.WriteRune(rune(c))
			}
		}
		return strings.ToValidUTF8(text.String(), "\ufffd")
	}
	var value uint64
	switch len(item) {
	case 1:
		value = uint64(item[0])
	case 2:
		value = uint64(order.Uint16(item))
	case 4:
		value = uint64(order.Uint32(item))
	case 8:
		value = order.Uint64(item)
	default:
		return fmt.Sprintf("%x", item)
	}
	shift := 64 - 8*len(item)
	switch {
	case kind.name == "float32":
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(value))), 'g', -1, 32)
	case kind.name == "float64":
		return strconv.FormatFloat(math.Float64frombits(value), 'g', -1, 64)
	case strings.HasPrefix(kind.name, "int"):
		return strconv.FormatInt(int64(value<<shift)>>shift, 10)
	}
	return strconv.FormatUint(value, 10)
}
