import './app/link'
import { MantineProvider, localStorageColorSchemeManager } from '@mantine/core'
import '@mantine/core/styles.css'
import '@mantine/dates/styles.css'
import { Notifications } from '@mantine/notifications'
import '@mantine/notifications/styles.css'
import '@mantine/spotlight/styles.css'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { newRouter } from './app/router'
import './app/style.css'
import { theme, variables } from './app/theme'
import { newQueryClient } from './shared/api/queries'
import { ConfirmProvider } from './shared/confirm'

// A file of another version of the server may be gone: the page is loaded anew, once.
window.addEventListener('vite:preloadError', (event) => {
  if (sessionStorage.getItem('loaded anew') === null) {
    sessionStorage.setItem('loaded anew', 'yes')
    event.preventDefault()
    window.location.reload()
  }
})

const schemes = localStorageColorSchemeManager({ key: 'muster-colours' })
const saved = schemes.get('auto')
// Before anything is drawn, so that a dark page does not flash.
document.documentElement.setAttribute('data-mantine-color-scheme', saved === 'auto' ? (window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light') : saved)

const client = newQueryClient()
const router = newRouter(client)

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider theme={theme} cssVariablesResolver={variables} colorSchemeManager={schemes} defaultColorScheme="auto">
      <QueryClientProvider client={client}>
        <Notifications position="bottom-right" />
        <ConfirmProvider>
          <RouterProvider router={router} />
        </ConfirmProvider>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
