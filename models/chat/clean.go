package chat

import "strings"

// Clean makes text the same wherever it comes from: every line ends with LF, a byte order mark
// at the start is gone, bytes that are not UTF-8 are U+FFFD. Everything else stays, NUL too.
// Messages are cleaned before they reach a template; raw prompts need it just as much.
func Clean(text string) string {
	text = strings.TrimPrefix(text, "\uFEFF")
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.Contains(text, "\r") {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}
