package window

import (
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// checkDisplay says whether an X server answers. Fyne ends the process when none does.
func checkDisplay() error {
	display := os.Getenv("DISPLAY")
	host, number, ok := strings.Cut(display, ":")
	if i := strings.LastIndexByte(display, ':'); i >= 0 {
		host, number = display[:i], display[i+1:]
	}
	number, _, _ = strings.Cut(number, ".")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 {
		return &DisplayError{display}
	}
	type place struct{ network, address string }
	places := []place{{"unix", "/tmp/.X11-unix/X" + number}, {"unix", "@/tmp/.X11-unix/X" + number}}
	switch {
	case strings.HasPrefix(display, "/"): // the path of a socket
		places = []place{{"unix", display}, {"unix", host}}
	case host != "" && host != "unix":
		places = []place{{"tcp", net.JoinHostPort(host, strconv.Itoa(6000+n))}}
	}
	for _, p := range places {
		if c, err := net.DialTimeout(p.network, p.address, time.Second); err == nil {
			c.Close()
			return nil
		}
	}
	return &DisplayError{display}
}
