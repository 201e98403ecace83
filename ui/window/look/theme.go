// Package look is how Firesteel appears: its colours, sizes and the few plain shapes that
// every surface is built from. It knows nothing of models.
package look

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// Colour names beyond Fyne's own.
const (
	ColorSide   fyne.ThemeColorName = "firesteelSide"   // the left column and the status line
	ColorCard   fyne.ThemeColorName = "firesteelCard"   // a raised surface
	ColorEdge   fyne.ThemeColorName = "firesteelEdge"   // a card's outline
	ColorMuted  fyne.ThemeColorName = "firesteelMuted"  // words that stand back
	ColorTrack  fyne.ThemeColorName = "firesteelTrack"  // what a slider or bar runs in
	ColorOwn    fyne.ThemeColorName = "firesteelOwn"    // the target's own words in the ribbon
	ColorNotice fyne.ThemeColorName = "firesteelNotice" // behind a message about something that failed
	ColorCode   fyne.ThemeColorName = "firesteelCode"   // behind code
)

// Mode says whether the window follows the system's light or dark setting.
type Mode string

const (
	System Mode = "system"
	Light  Mode = "light"
	Dark   Mode = "dark"
)

// Unit is the rhythm that distances are multiples of, in Fyne's pixels.
const Unit float32 = 8

// Inset is the space that Fyne's labels keep around their text; Tight takes it back.
const Inset float32 = 8

// Theme is Firesteel's theme. The zero Scale means 1.
type Theme struct {
	Mode  Mode
	Scale float32 // text size, 1 = 100 %
}

type shades struct{ light, dark color.NRGBA }

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

func rgba(v uint32, alpha uint8) color.NRGBA {
	c := rgb(v)
	c.A = alpha
	return c
}

// The accent is the orange of steel at forging heat. It marks what can be pressed and the
// drafts that were accepted, and nothing else.
var palette = map[fyne.ThemeColorName]shades{
	ColorSide:   {rgb(0xf1eeea), rgb(0x191817)},
	ColorCard:   {rgb(0xffffff), rgb(0x2a2826)},
	ColorEdge:   {rgb(0xe2ddd6), rgb(0x38352f)},
	ColorMuted:  {rgb(0x6b655d), rgb(0xa39b90)},
	ColorTrack:  {rgb(0xd9d3ca), rgb(0x45413b)},
	ColorOwn:    {rgb(0xb3aba0), rgb(0x6d675f)},
	ColorNotice: {rgb(0xfcebe8), rgb(0x3a2320)},
	ColorCode:   {rgb(0xf3f0ec), rgb(0x191817)},

	theme.ColorNameBackground:          {rgb(0xfaf8f6), rgb(0x1f1e1c)},
	theme.ColorNameForeground:          {rgb(0x26231f), rgb(0xebe6df)},
	theme.ColorNamePrimary:             {rgb(0xbf5615), rgb(0xf08f4f)},
	theme.ColorNameForegroundOnPrimary: {rgb(0xffffff), rgb(0x241508)},
	theme.ColorNameHyperlink:           {rgb(0xb04e10), rgb(0xf08f4f)},
	theme.ColorNameFocus:               {rgba(0xbf5615, 0x40), rgba(0xf08f4f, 0x50)},
	theme.ColorNameSelection:           {rgba(0xd98a55, 0x55), rgba(0xb5693a, 0x80)},
	theme.ColorNameButton:              {rgb(0xe9e4dd), rgb(0x3a3733)},
	theme.ColorNameDisabledButton:      {rgb(0xe9e5df), rgb(0x2d2b28)},
	theme.ColorNameDisabled:            {rgb(0xa39c92), rgb(0x6b655e)},
	theme.ColorNamePlaceHolder:         {rgb(0x8a8378), rgb(0x857e74)},
	theme.ColorNameHover:               {rgba(0x3b2b1c, 0x0f), rgba(0xffffff, 0x10)},
	theme.ColorNamePressed:             {rgba(0x3b2b1c, 0x20), rgba(0xffffff, 0x20)},
	theme.ColorNameInputBackground:     {rgb(0xffffff), rgb(0x2a2826)},
	theme.ColorNameInputBorder:         {rgb(0x9a9287), rgb(0x7a7369)},
	theme.ColorNameMenuBackground:      {rgb(0xffffff), rgb(0x2a2826)},
	theme.ColorNameOverlayBackground:   {rgb(0xfdfcfa), rgb(0x252321)},
	theme.ColorNameHeaderBackground:    {rgb(0xf1eeea), rgb(0x191817)},
	theme.ColorNameSeparator:           {rgb(0xe2ddd6), rgb(0x35322e)},
	theme.ColorNameScrollBar:           {rgba(0x3b2b1c, 0x50), rgba(0xffffff, 0x40)},
	theme.ColorNameScrollBarBackground: {rgba(0, 0), rgba(0, 0)},
	theme.ColorNameShadow:              {rgba(0x3b2b1c, 0x18), rgba(0, 0x50)},
	theme.ColorNameError:               {rgb(0xb3261e), rgb(0xf2877c)},
	theme.ColorNameWarning:             {rgb(0x96680a), rgb(0xe6b450)},
	theme.ColorNameSuccess:             {rgb(0x3f7a3a), rgb(0x8cc585)},
	theme.ColorNameForegroundOnError:   {rgb(0xffffff), rgb(0x2a0f0c)},
	theme.ColorNameForegroundOnWarning: {rgb(0xffffff), rgb(0x2a2008)},
	theme.ColorNameForegroundOnSuccess: {rgb(0xffffff), rgb(0x0e240c)},
}

// Color returns the colour of that name, in the mode chosen or else the system's.
func (t *Theme) Color(name fyne.ThemeColorName, variant fyne.ThemeVariant) color.Color {
	switch t.Mode {
	case Light:
		variant = theme.VariantLight
	case Dark:
		variant = theme.VariantDark
	}
	if s, ok := palette[name]; ok {
		if variant == theme.VariantDark {
			return s.dark
		}
		return s.light
	}
	return theme.DefaultTheme().Color(name, variant)
}

// Font returns Fyne's bundled faces, whose figures all have one width.
func (t *Theme) Font(style fyne.TextStyle) fyne.Resource { return theme.DefaultTheme().Font(style) }

// Icon returns Fyne's bundled icons.
func (t *Theme) Icon(name fyne.ThemeIconName) fyne.Resource { return theme.DefaultTheme().Icon(name) }

// Size returns sizes in Fyne's pixels; those of text follow the text size chosen.
func (t *Theme) Size(name fyne.ThemeSizeName) float32 {
	scale := t.Scale
	if scale == 0 {
		scale = 1
	}
	switch name {
	case theme.SizeNameText:
		return 14 * scale
	case theme.SizeNameCaptionText:
		return 12 * scale
	case theme.SizeNameSubHeadingText:
		return 16 * scale
	case theme.SizeNameHeadingText:
		return 20 * scale
	case theme.SizeNameLineSpacing:
		return 4 * scale
	case theme.SizeNameInlineIcon:
		return 18 * scale
	case theme.SizeNamePadding:
		return 4
	case theme.SizeNameInnerPadding:
		return Inset
	case theme.SizeNameInputRadius, theme.SizeNameButtonRadius, theme.SizeNameMenuRadius:
		return 8
	case theme.SizeNameDialogRadius, theme.SizeNamePopupRadius:
		return 12
	case theme.SizeNameScrollBar:
		return 10
	case theme.SizeNameScrollBarSmall:
		return 4
	}
	return theme.DefaultTheme().Size(name)
}

// Color looks a colour up in the theme in use.
func Color(name fyne.ThemeColorName) color.Color {
	s := fyne.CurrentApp().Settings()
	return s.Theme().Color(name, s.ThemeVariant())
}

// Size looks a size up in the theme in use.
func Size(name fyne.ThemeSizeName) float32 {
	return fyne.CurrentApp().Settings().Theme().Size(name)
}

// Fade returns c with its opacity multiplied by a.
func Fade(c color.Color, a float64) color.NRGBA {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	n.A = uint8(float64(n.A) * a)
	return n
}

// Compact is the theme in use with little space inside entries.
type Compact struct{}

func (*Compact) now() fyne.Theme { return fyne.CurrentApp().Settings().Theme() }

// Color, Font and Icon are those of the theme in use.
func (c *Compact) Color(name fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	return c.now().Color(name, v)
}
func (c *Compact) Font(style fyne.TextStyle) fyne.Resource    { return c.now().Font(style) }
func (c *Compact) Icon(name fyne.ThemeIconName) fyne.Resource { return c.now().Icon(name) }

// Size is that of the theme in use, except inside entries and for their text.
func (c *Compact) Size(name fyne.ThemeSizeName) float32 {
	switch name {
	case theme.SizeNameInnerPadding:
		return 6
	case theme.SizeNameText:
		return c.now().Size(theme.SizeNameCaptionText)
	case theme.SizeNameInputRadius:
		return 6
	}
	return c.now().Size(name)
}
