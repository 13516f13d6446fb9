// An OpenID provider on a free port of this machine. It prints its issuer, and ends when its input ends.
//
// Each client but `console` is named after a role and gets tokens with that role in the workspace of WORKSPACE_ID, for the
// audience `nudge`, signed with the algorithm that the requested resource names. People sign in with `console`, whatever
// their password; each is named after a role and has it.
import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const workspace = process.env.WORKSPACE_ID;
const secret = process.env.CLIENT_SECRET;
// `localhost` is another site for browsers than the server's 127.0.0.1.
const host = process.env.ISSUER_HOST ?? '127.0.0.1';

const key = (alg, type, options) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }),
  alg,
  use: 'sig',
  kid: `key-${alg}`,
});
const keys = [
  key('RS256', 'rsa', { modulusLength: 2048 }),
  key('ES256', 'ec', { namedCurve: 'P-256' }),
  key('EdDSA', 'ed25519', {}),
];

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://${host}:${server.address().port}`;
  const provider = new Provider(issuer, {
    jwks: { keys },
    clients: [
      ...['viewer', 'editor', 'admin'].map((role) => ({
        client_id: role,
        client_secret: secret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      })),
      {
        client_id: 'console',
        client_secret: secret,
        // Of a native client it takes any port of this machine.
        application_type: 'native',
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: ['http://127.0.0.1/console/callback'],
        response_types: ['code'],
      },
    ],
    issueRefreshToken: (context, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    features: {
      devInteractions: { enabled: true },
      clientCredentials: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (context, resource) => ({
          scope: '',
          audience: 'nudge',
          accessTokenFormat: 'jwt',
          accessTokenTTL: 3600,
          jwt: { sign: { alg: resource.split(':').pop() } },
        }),
      },
    },
    extraTokenClaims: (context, token) => ({ roles: { [workspace]: token.accountId ?? token.clientId } }),
  });
  server.on('request', provider.callback());
  console.log(JSON.stringify({ issuer }));
});

process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
