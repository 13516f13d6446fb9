/** The renderer's own words. What a survey says is the server's, already in the person's language. */

const KEYS =
  "next back send skip close optional required least most characters email url phone number step date consent rows field other open up down moved of question good bad thanks refused ended feedback";

type Word<S extends string> = S extends `${infer First} ${infer Rest}` ? First | Word<Rest> : S;

/** A text's name. */
export type TextKey = Word<typeof KEYS>;

/** Gets a text, with values at `{0}`, `{1}`, `{2}`. */
export type Texts = (key: TextKey, ...values: (string | number)[]) => string;

/** Texts by language, in the order of their keys. */
export const LANGUAGES: Record<string, string> = {
  en: "Next|Back|Send|Skip|Close|(optional)|Answer this question.|At least {0}.|At most {0}.|{0} characters|Enter an e-mail address, such as name@example.com.|Enter an address that begins with https://.|Enter a phone number of 5 to 15 digits.|Enter a number.|Use steps of {0}.|Enter a whole date.|Tick the box to go on.|Answer in each row.|Fill in “{0}”.|Other|Open|Move “{0}” up|Move “{0}” down|{0}: place {1} of {2}|{0} of {1}|Question {0} of {1}|Thumbs up|Thumbs down|Thank you!|This answer was not accepted.|This is no longer available.|Feedback",
  de: "Weiter|Zurück|Senden|Überspringen|Schließen|(freiwillig)|Beantworten Sie diese Frage.|Mindestens {0}.|Höchstens {0}.|{0} Zeichen|Geben Sie eine E-Mail-Adresse ein, etwa name@example.com.|Geben Sie eine Adresse ein, die mit https:// beginnt.|Geben Sie eine Telefonnummer mit 5 bis 15 Ziffern ein.|Geben Sie eine Zahl ein.|In Schritten von {0}.|Geben Sie ein ganzes Datum ein.|Stimmen Sie zu, um fortzufahren.|Antworten Sie in jeder Zeile.|Füllen Sie „{0}“ aus.|Anderes|Öffnen|„{0}“ nach oben|„{0}“ nach unten|{0}: Platz {1} von {2}|{0} von {1}|Frage {0} von {1}|Daumen hoch|Daumen runter|Vielen Dank!|Diese Antwort wurde nicht angenommen.|Das ist nicht mehr verfügbar.|Feedback",
  fr: "Suivant|Retour|Envoyer|Passer|Fermer|(facultatif)|Répondez à cette question.|Au moins {0}.|Au plus {0}.|{0} caractères|Saisissez une adresse e-mail, par exemple nom@example.com.|Saisissez une adresse qui commence par https://.|Saisissez un numéro de téléphone de 5 à 15 chiffres.|Saisissez un nombre.|Par pas de {0}.|Saisissez une date complète.|Cochez la case pour continuer.|Répondez à chaque ligne.|Remplissez « {0} ».|Autre|Ouvrir|Monter « {0} »|Descendre « {0} »|{0} : place {1} sur {2}|{0} sur {1}|Question {0} sur {1}|Pouce levé|Pouce baissé|Merci !|Cette réponse n’a pas été acceptée.|Ceci n’est plus disponible.|Votre avis",
  es: "Siguiente|Atrás|Enviar|Omitir|Cerrar|(opcional)|Responda a esta pregunta.|Como mínimo {0}.|Como máximo {0}.|{0} caracteres|Introduzca un correo electrónico, por ejemplo nombre@example.com.|Introduzca una dirección que empiece por https://.|Introduzca un teléfono de 5 a 15 cifras.|Introduzca un número.|Use pasos de {0}.|Introduzca una fecha completa.|Marque la casilla para continuar.|Responda en cada fila.|Rellene «{0}».|Otro|Abrir|Subir «{0}»|Bajar «{0}»|{0}: puesto {1} de {2}|{0} de {1}|Pregunta {0} de {1}|Pulgar arriba|Pulgar abajo|¡Gracias!|Esta respuesta no se ha aceptado.|Esto ya no está disponible.|Opinión",
  ar: "التالي|السابق|إرسال|تخطٍّ|إغلاق|(اختياري)|يرجى الإجابة عن هذا السؤال.|الحد الأدنى {0}.|الحد الأقصى {0}.|{0} حرفًا|يرجى إدخال بريد إلكتروني، مثل name@example.com.|يرجى إدخال عنوان يبدأ بـ https://.|يرجى إدخال رقم هاتف من 5 إلى 15 رقمًا.|يرجى إدخال رقم.|يرجى استخدام خطوات بمقدار {0}.|يرجى إدخال تاريخ كامل.|يرجى تحديد المربع للمتابعة.|يرجى الإجابة في كل صف.|يرجى ملء «{0}».|غير ذلك|فتح|نقل «{0}» إلى أعلى|نقل «{0}» إلى أسفل|{0}: المرتبة {1} من {2}|{0} من {1}|السؤال {0} من {1}|إعجاب|عدم إعجاب|شكرًا لك!|لم تُقبل هذه الإجابة.|لم يعد هذا متاحًا.|رأيك",
};

/** The language of a locale that there are texts in; English otherwise. */
export function languageOf(locale: string): string {
  const language = locale.toLowerCase().split(/[-_]/)[0] ?? "";
  return language in LANGUAGES ? language : "en";
}

/** The texts of a language. */
export function textsOf(language: string): Texts {
  const texts = (LANGUAGES[language] ?? "").split("|");
  const keys: string[] = KEYS.split(" ");
  return (key, ...values) =>
    (texts[keys.indexOf(key)] ?? key).replace(/\{(\d)\}/g, (_, place: string) => `${values[+place] ?? ""}`);
}

/** Which way a text is written: as its language is, or as its first letter where that is not known. */
export function directionOf(text: string, locale = ""): "rtl" | "ltr" {
  let isRight = /[\p{sc=Arab}\p{sc=Hebr}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}]/u.test(
    /\p{L}/u.exec(text)?.[0] ?? "",
  );
  try {
    isRight = /Arab|Hebr|Syrc|Thaa|Nkoo/.test(`${new Intl.Locale(locale).maximize().script}`);
  } catch {
    // No language, or none that browsers know.
  }
  return isRight ? "rtl" : "ltr";
}
