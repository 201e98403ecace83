package window

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// openDisplay asks the X server that DISPLAY names whether it lets us in; Fyne ends the
// process where none does. The connection is to be closed once Fyne has its own: a server
// without clients may reset itself.
func openDisplay() (io.Closer, error) {
	display := os.Getenv("DISPLAY")
	var err error
	for try := range 5 {
		time.Sleep(time.Duration(try) * 100 * time.Millisecond) // it may be starting, or resetting
		var c net.Conn
		if c, err = dialDisplay(display); err == nil {
			return c, nil
		}
		if _, refused := err.(*DisplayError); refused {
			break
		}
	}
	return nil, &DisplayError{display}
}

// dialDisplay connects to the server of a display name like ":0", "host:10.0" or, on macOS's
// X server, a path. The error is a *DisplayError when trying again is of no use.
func dialDisplay(display string) (net.Conn, error) {
	i := strings.LastIndexByte(display, ':')
	if i < 0 {
		return nil, &DisplayError{display}
	}
	host := display[:i]
	number, _, _ := strings.Cut(display[i+1:], ".")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return nil, &DisplayError{display}
	}
	places := [][2]string{{"unix", "@/tmp/.X11-unix/X" + number}, {"unix", "/tmp/.X11-unix/X" + number}}
	if host != "" && host != "unix" && !strings.HasPrefix(host, "/") {
		places = [][2]string{{"tcp", net.JoinHostPort(host, strconv.Itoa(6000+n))}}
	}
	for _, p := range places {
		var c net.Conn
		if c, err = net.DialTimeout(p[0], p[1], time.Second); err != nil {
			continue
		}
		if err = greet(c, cookie(number)); err == nil {
			return c, nil
		}
		c.Close()
	}
	return nil, err
}

// greet opens an X11 connection on c and fails unless the server accepts it.
func greet(c net.Conn, cookie []byte) error {
	const scheme = "MIT-MAGIC-COOKIE-1"
	name := scheme
	if len(cookie) == 0 {
		name = ""
	}
	// Byte order, unused, version 11.0, the lengths of scheme and cookie, both padded to four.
	hello := []byte{'l', 0, 11, 0, 0, 0, byte(len(name)), 0, byte(len(cookie)), 0, 0, 0}
	hello = append(hello, padded([]byte(name))...)
	hello = append(hello, padded(cookie)...)
	c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := c.Write(hello); err != nil {
		return err
	}
	reply := make([]byte, 8)
	if _, err := io.ReadFull(c, reply); err != nil {
		return err
	}
	if reply[0] != 1 {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func padded(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// cookie returns the secret for the display of that number on this machine, nil when the
// user's file of secrets has none.
func cookie(number string) []byte {
	path := os.Getenv("XAUTHORITY")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil
		}
		path = filepath.Join(home, ".Xauthority")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	// Entries of: family, then address, number, scheme and secret, each after its length.
	for len(data) > 2 {
		data = data[2:]
		var fields [4][]byte
		for i := range fields {
			if len(data) < 2 {
				return nil
			}
			n := int(binary.BigEndian.Uint16(data))
			if len(data) < 2+n {
				return nil
			}
			fields[i], data = data[2:2+n], data[2+n:]
		}
		if at := string(fields[1]); (at == number || at == "") && string(fields[2]) == "MIT-MAGIC-COOKIE-1" {
			return fields[3]
		}
	}
	return nil
}
