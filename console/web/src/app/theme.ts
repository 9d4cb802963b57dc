import { createTheme, type CSSVariablesResolver } from '@mantine/core'

/** Mantine's theme with one accent, smaller texts, and greys with enough contrast. */
export const theme = createTheme({
  primaryColor: 'cyan',
  primaryShade: { light: 9, dark: 9 },
  defaultRadius: 'sm',
  respectReducedMotion: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  headings: { fontWeight: '600', sizes: { h1: { fontSize: '1.5rem' }, h2: { fontSize: '1.25rem' }, h3: { fontSize: '1.125rem' }, h4: { fontSize: '1rem' }, h5: { fontSize: '0.875rem' } } },
  components: {
    Button: { defaultProps: { size: 'sm' } },
    Tooltip: { defaultProps: { openDelay: 300, events: { hover: true, focus: true, touch: true } } },
    Notification: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
    Modal: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
    // The placeholder that takes the first focus would be an element in role=menu that is no item.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    Drawer: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
  },
})

export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#5b636b',
    '--mantine-color-placeholder': '#6b737b',
    '--mantine-color-error': '#c92a2a',
    '--panel': '#f8f9fa',
    // Mantine's are too pale for the text on them.
    '--mantine-color-cyan-light-hover': '#bff4f9',
    '--mantine-color-cyan-filled-hover': '#095c6b',
    '--code-name': '#0b7285',
    '--code-text': '#2b6e32',
    '--code-number': '#a3420b',
  },
  dark: {
    '--mantine-color-dimmed': '#a9adb3',
    '--mantine-color-placeholder': '#9a9ea5',
    '--mantine-color-error': '#ff8787',
    '--panel': '#2a2b2d',
    '--mantine-color-cyan-filled-hover': '#095c6b',
    '--code-name': '#66d9e8',
    '--code-text': '#8ce99a',
    '--code-number': '#ffc078',
  },
})
